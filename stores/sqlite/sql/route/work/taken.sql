-- Clears the mark of an activity that was refused, because it is leased again.
UPDATE work SET refused = 0 WHERE seq = ?1 AND refused = 1
