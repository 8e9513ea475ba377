-- Tells whether a session has an activity of a tag that has been ready since before ?3. In a serial session
-- only the oldest one counts, ?4.
SELECT EXISTS (
    SELECT 1 FROM work
    WHERE session = ?1 AND state = 1 AND tag = ?2 AND since < ?3 AND (?4 IS NULL OR seq = ?4)
        AND seq NOT IN (SELECT row FROM torn_work)
)
