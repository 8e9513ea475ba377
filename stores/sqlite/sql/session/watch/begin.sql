-- Records that an execution watches a session: it gets a message when a worker claims the session anew (S13).
INSERT INTO watchers (instance, session_id, key, execution, has_seen)
VALUES (?1, ?2, ?3, ?4, EXISTS (
    SELECT 1 FROM sessions
    WHERE instance = ?1 AND session_id = ?2 AND epoch > 0 AND (closed_epoch IS NULL OR uses > 0)
))
ON CONFLICT DO NOTHING
