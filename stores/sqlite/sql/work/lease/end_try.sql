-- Ends a try of the activity ?1 with the error ?2 (S22): its lease ends, the count of deliveries that finds
-- poison begins anew, and it is delayed until ?3; ?4 is now.
UPDATE work
SET state = iif(?3 <= ?4, 1, 0), visible_at = ?3, since = ?4, attempts = 0, tries = tries + 1,
    last_error = ?2, token = NULL, locked_until = NULL, epoch = NULL
WHERE seq = (SELECT ?1 WHERE ?1 NOT IN (SELECT row FROM torn_work))
