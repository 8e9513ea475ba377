-- Lists the trail of a session, oldest first. A claim whose lease has expired is told to have ended,
-- although no call has noticed it; one that was released has not expired, although its end may be forgotten.
SELECT t.epoch, t.is_end, t.worker_id, t.incarnation, t.at_ms, t.change
FROM {schema}.session_trail AS t
WHERE t.instance_id = $1 AND t.session_id = $2
UNION ALL
SELECT s.epoch, true, s.worker_id, s.incarnation, least(s.locked_until, {schema}.now_ms($3)), 'expired'
FROM {schema}.sessions AS s
WHERE s.instance_id = $1 AND s.session_id = $2 AND s.epoch > 0
  AND s.released_epoch IS DISTINCT FROM s.epoch
  AND NOT (s.held AND s.locked_until > {schema}.now_ms($3))
  AND NOT EXISTS (
      SELECT 1 FROM {schema}.session_trail AS ends
      WHERE ends.instance_id = $1 AND ends.session_id = $2 AND ends.epoch = s.epoch AND ends.is_end
  )
ORDER BY 1, 2
