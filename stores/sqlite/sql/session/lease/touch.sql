-- Moves the last activity of the session of an activity, if the epoch of its holder is still the session's
-- (S13).
UPDATE sessions
SET last_activity = ?2
WHERE id = (SELECT session FROM work WHERE seq = ?1)
  AND held = 1
  AND locked_until > ?2
  AND epoch = (SELECT epoch FROM work WHERE seq = ?1)
