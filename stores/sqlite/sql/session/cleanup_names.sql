-- Removes the names of sessions that no work names any more.
DELETE FROM sessions WHERE is_row = 0 AND NOT EXISTS (SELECT 1 FROM work WHERE work.session = sessions.id)
