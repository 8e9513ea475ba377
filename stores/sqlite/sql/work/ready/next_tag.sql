-- Finds the lowest tag above ?1 that a ready activity without a session has: two index lookups. Called again
-- and again, it lists the tags of all ready activities.
SELECT min(tag) FROM (
    SELECT min(tag) AS tag FROM work WHERE state = 1 AND session IS NULL AND tag > ?1
        AND seq NOT IN (SELECT row FROM torn_work)
    UNION ALL
    SELECT min(tag) FROM work WHERE session = 0 AND state = 1 AND tag > ?1
        AND seq NOT IN (SELECT row FROM torn_work)
)
