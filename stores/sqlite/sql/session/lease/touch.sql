-- Moves the last activity of a session, if the holder of an activity still has the attachment it had.
UPDATE sessions
SET last_activity = ?2
WHERE id = (SELECT session FROM work WHERE seq = ?1)
  AND held = 1
  AND locked_until > ?2
  AND epoch = (SELECT epoch FROM work WHERE seq = ?1)
