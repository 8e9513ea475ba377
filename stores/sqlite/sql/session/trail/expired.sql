-- Writes into the trail of a session whose row is gone that its last claim expired, unless the trail says
-- how it ended.
INSERT INTO session_trail (instance, session_id, epoch, is_end, owner, incarnation, at, change)
VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7)
ON CONFLICT (instance, session_id, epoch, is_end) DO NOTHING
