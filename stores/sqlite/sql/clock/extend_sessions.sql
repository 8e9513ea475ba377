-- Extends the live leases of sessions by as much as the time jumps forward: those that end after ?1, by ?2,
-- also that of a closed claim that was replaced. A session is not idle for that time either.
UPDATE sessions SET locked_until = min(locked_until, 9223372036854775807 - ?2) + ?2,
    last_activity = min(last_activity, 9223372036854775807 - ?2) + ?2,
    replaced_until = iif(replaced_until > ?1, min(replaced_until, 9223372036854775807 - ?2) + ?2,
        replaced_until)
WHERE held = 1 AND locked_until > ?1
