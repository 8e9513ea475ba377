-- Records the length of a lease if it is longer than all before (S16). Almost always the row does not change.
UPDATE counter SET longest_lease = ?1 WHERE id = 1 AND longest_lease < ?1
