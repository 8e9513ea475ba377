-- Lists activities whose time has come, or whose lease has ended, by indexes alone, in a bounded batch.
SELECT seq FROM (
    SELECT seq FROM work
    WHERE state = 0 AND visible_at <= ?1 AND seq NOT IN (SELECT row FROM torn_work)
    ORDER BY visible_at LIMIT ?2
)
UNION ALL
SELECT seq FROM (
    SELECT seq FROM work
    WHERE state = 2 AND locked_until <= ?1 AND seq NOT IN (SELECT row FROM torn_work)
    ORDER BY locked_until LIMIT ?2
)
