-- Records that the executions that watch a session know of a claim: the next one is a move (S13).
UPDATE watchers SET has_seen = 1 WHERE instance = ?1 AND session_id = ?2
