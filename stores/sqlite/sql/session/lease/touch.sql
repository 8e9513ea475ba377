-- Sets the time of the last work on the session of activity ?1, unless the session's lease has ended or the
-- session was claimed anew since the activity was leased (S13).
UPDATE sessions
SET last_activity = ?2
WHERE id = (SELECT session FROM work WHERE seq = (SELECT ?1 WHERE ?1 NOT IN (SELECT row FROM torn_work)))
  AND held = 1
  AND locked_until > ?2
  AND epoch = (SELECT epoch FROM work WHERE seq = (SELECT ?1 WHERE ?1 NOT IN (SELECT row FROM torn_work)))
