-- Reads whose session a number is, and its name.
SELECT instance, session_id FROM sessions WHERE id = ?1
