-- Finds the time since which some ready activity could have been leased: two looks at indexes (S20).
SELECT min(at) FROM (
    SELECT min(since) AS at FROM work WHERE state = 1 AND session IS NULL
    UNION ALL
    SELECT min(since) FROM heads
)
