-- Finds the next time at which an activity becomes visible, a lease ends, or a session is let go. Three looks.
SELECT min(at) FROM (
    SELECT min(visible_at) AS at FROM work WHERE state = 0 AND visible_at > ?1
    UNION ALL
    SELECT min(locked_until) FROM work WHERE state = 2 AND locked_until > ?1
    UNION ALL
    SELECT min(locked_until) FROM sessions WHERE held = 1 AND locked_until > ?1
)
