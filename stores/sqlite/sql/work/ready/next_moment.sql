-- Finds the next time at which an activity becomes visible, the lease of an activity or a session ends, or an
-- activity that could not be read is read again: four index lookups.
SELECT min(at) FROM (
    SELECT min(visible_at) AS at FROM work WHERE state = 0 AND visible_at > ?1
    UNION ALL
    SELECT min(locked_until) FROM work WHERE state = 2 AND locked_until > ?1
    UNION ALL
    SELECT min(locked_until) FROM sessions WHERE held = 1 AND locked_until > ?1
    UNION ALL
    SELECT min(until) FROM torn_work WHERE until > ?1
)
