-- Records that a session was claimed while executions watch it: the next claim is a move, of which they are
-- told (S13).
UPDATE watchers SET has_seen = 1 WHERE instance = ?1 AND session_id = ?2
