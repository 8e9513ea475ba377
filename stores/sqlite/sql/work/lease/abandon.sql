-- Abandons the lease of the activity ?1 (S6). ?2 is taken off its delivery count: 1 if this delivery does not
-- count, else 0. With a time in ?3 the activity is delayed until then; ?4 is now.
UPDATE work
SET state = iif(?3 IS NULL OR ?3 <= ?4, 1, 0),
    visible_at = coalesce(?3, visible_at),
    since = ?4,
    attempts = max(attempts - ?2, 0),
    token = NULL, locked_until = NULL, epoch = NULL
WHERE seq = (SELECT ?1 WHERE ?1 NOT IN (SELECT row FROM torn_work))
