-- Finds since when the ready activity that has waited for the longest can be leased: two index lookups (S20).
SELECT min(at) FROM (
    SELECT min(since) AS at FROM work WHERE state = 1 AND session IS NULL
    UNION ALL
    SELECT min(since) FROM heads
)
