-- Removes sessions that nothing needs, and counts them.
SELECT removed FROM {name}.cleanup_sessions()
