-- Writes into the trail of a session how its last claim ended: as ?3 says if the lease lasts, else it
-- expired. Of several ends the first one counts: nothing is written about a claim that was released, although
-- its trail may have forgotten that. A session that was never claimed has no end.
INSERT INTO session_trail (instance, session_id, epoch, is_end, owner, incarnation, at, change)
SELECT instance, session_id, epoch, 1, owner, incarnation, min(locked_until, ?2),
    CASE WHEN held = 1 AND locked_until > ?2 THEN ?3 ELSE ?4 END
FROM sessions WHERE id = ?1 AND epoch > 0 AND (closed_epoch IS NULL OR uses > 0)
  AND released_epoch IS NOT epoch
ON CONFLICT (instance, session_id, epoch, is_end) DO NOTHING
