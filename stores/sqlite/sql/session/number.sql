-- Finds the number of a session.
SELECT id FROM sessions WHERE instance = ?1 AND session_id = ?2
