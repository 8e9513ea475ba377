-- Marks the delayed message ?1 as ready, because its time has come. The caller makes its instance ready.
UPDATE messages SET state = 1 WHERE seq = ?1
