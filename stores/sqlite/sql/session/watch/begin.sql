-- Notes that an execution wants to hear of the next attachments of a session.
INSERT INTO watchers (instance, session_id, key, execution, has_seen)
VALUES (?1, ?2, ?3, ?4, EXISTS (SELECT 1 FROM sessions WHERE instance = ?1 AND session_id = ?2 AND epoch > 0))
ON CONFLICT DO NOTHING
