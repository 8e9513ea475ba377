-- Lists the trail of a session, oldest first. A claim whose lease has expired is told to have ended,
-- although no call has noticed it; one that was released has not expired, although its end may be forgotten.
SELECT epoch, is_end, owner, incarnation, at, change FROM session_trail
WHERE instance = ?1 AND session_id = ?2
UNION ALL
SELECT epoch, 1, owner, incarnation, min(locked_until, ?3), ?4 FROM sessions
WHERE instance = ?1 AND session_id = ?2 AND epoch > 0 AND (closed_epoch IS NULL OR uses > 0)
  AND released_epoch IS NOT epoch
  AND NOT (held = 1 AND locked_until > ?3)
  AND NOT EXISTS (
      SELECT 1 FROM session_trail AS ends
      WHERE ends.instance = ?1 AND ends.session_id = ?2 AND ends.epoch = sessions.epoch AND ends.is_end = 1
  )
ORDER BY epoch, is_end
