-- Records that an execution wants to be told of the next claims of a session (S13).
INSERT INTO watchers (instance, session_id, key, execution, has_seen)
VALUES (?1, ?2, ?3, ?4, EXISTS (SELECT 1 FROM sessions WHERE instance = ?1 AND session_id = ?2 AND epoch > 0))
ON CONFLICT DO NOTHING
