-- Finds the oldest activity of a serial session, whether it is delayed, ready or leased; activities that
-- could not be read are skipped.
SELECT seq, state, tag FROM work
WHERE session = ?1 AND unreadable = 0 AND seq NOT IN (SELECT row FROM torn_work) ORDER BY seq LIMIT 1
