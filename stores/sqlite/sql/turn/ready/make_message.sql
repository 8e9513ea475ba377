-- Makes a delayed message ready.
UPDATE messages SET state = 1 WHERE seq = ?1
