-- Moves a delayed message to the ready ones.
UPDATE messages SET state = 1 WHERE seq = ?1
