-- Describes every session in one line, for debugging.
SELECT printf('%d %s/%s held %d by %s until %d epoch %d', id, instance, session_id, held, owner,
    locked_until, epoch)
FROM sessions ORDER BY instance, session_id
