-- Finds the next time at which an activity becomes visible, or the lease of an activity or a session ends:
-- three index lookups.
SELECT min(at) FROM (
    SELECT min(visible_at) AS at FROM work WHERE state = 0 AND visible_at > ?1
    UNION ALL
    SELECT min(locked_until) FROM work WHERE state = 2 AND locked_until > ?1
    UNION ALL
    SELECT min(locked_until) FROM sessions WHERE held = 1 AND locked_until > ?1
)
