-- Clears the mark of an instance that was refused, because it is leased again.
UPDATE instances SET refused = 0 WHERE key = ?1 AND refused = 1
