-- Marks the delayed message ?1 as ready, because its time has come. The caller makes its instance ready.
-- Returns whether the message needs code.
UPDATE messages SET state = 1 WHERE seq = ?1 RETURNING needs_code
