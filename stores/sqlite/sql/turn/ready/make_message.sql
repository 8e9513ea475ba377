-- Makes a delayed message ready for delivery, because its time has come.
UPDATE messages SET state = 1 WHERE seq = ?1
