-- Abandons the lease of an activity (S6). ?2 is taken off its delivery count (1 if this delivery does not
-- count, else 0); with a time in ?3 it is delayed until then.
UPDATE work
SET state = iif(?3 IS NULL OR ?3 <= ?4, 1, 0),
    visible_at = coalesce(?3, visible_at),
    since = ?4,
    attempts = max(attempts - ?2, 0),
    token = NULL, locked_until = NULL, epoch = NULL
WHERE seq = ?1
