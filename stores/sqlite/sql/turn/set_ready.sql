-- Frees an instance: it is ready if it has a ready message, and has nothing to do otherwise.
UPDATE instances
SET turn = iif(?2 IS NULL, 0, 1), head = ?2, token = NULL, locked_until = NULL
WHERE key = ?1
