-- Records the length of the longest lease; almost always there is nothing to change (S16).
UPDATE counter SET longest_lease = ?1 WHERE id = 1 AND longest_lease < ?1
