-- Counts the ready activities without a session of a tag, up to ?2 of those without terms and of those with.
SELECT (SELECT count(*) FROM (
        SELECT 1 FROM work
        WHERE state = 1 AND session IS NULL AND tag = ?1 AND seq NOT IN (SELECT row FROM torn_work) LIMIT ?2
    ))
    + (SELECT count(*) FROM (
        SELECT 1 FROM work
        WHERE session = 0 AND state = 1 AND tag = ?1 AND seq NOT IN (SELECT row FROM torn_work) LIMIT ?2
    ))
