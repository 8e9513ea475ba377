-- Lists the sessions that an instance has open.
SELECT session_id FROM sessions WHERE instance = ?1 AND is_row = 1
