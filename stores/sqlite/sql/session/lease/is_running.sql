-- Tells whether an activity of a session is leased now.
SELECT EXISTS (
    SELECT 1 FROM work
    WHERE session = ?1 AND state = 2 AND locked_until > ?2 AND seq NOT IN (SELECT row FROM torn_work)
)
