-- Finds since when the ready activity that has waited for the longest can be leased: three index lookups, and
-- one for each route (S20).
SELECT min(at) FROM (
    SELECT min(since) AS at FROM work
    WHERE state = 1 AND session IS NULL AND seq NOT IN (SELECT row FROM torn_work)
    UNION ALL
    SELECT min(since) FROM work
    WHERE state = 1 AND session IS 0 AND seq NOT IN (SELECT row FROM torn_work)
    UNION ALL
    SELECT min(since) FROM heads
    UNION ALL
    SELECT (
        SELECT min(work.since) FROM work
        WHERE work.session = -routes.id AND work.tag = routes.tag AND work.state = 1
            AND work.session IS NOT NULL AND work.seq NOT IN (SELECT row FROM torn_work)
    ) FROM routes WHERE kind IN (1, 2)
)
