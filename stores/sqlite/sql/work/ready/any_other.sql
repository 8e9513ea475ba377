-- Tells whether there is ready work of a session, routed work, or work or a session that becomes free because
-- its time has come.
SELECT EXISTS (SELECT 1 FROM heads)
    OR EXISTS (
        SELECT 1 FROM routes JOIN work ON work.session = -routes.id AND work.state = 1
        WHERE routes.kind IN (1, 2) AND work.seq NOT IN (SELECT row FROM torn_work)
    )
    OR EXISTS (
        SELECT 1 FROM work WHERE state = 0 AND visible_at <= ?1 AND seq NOT IN (SELECT row FROM torn_work)
    )
    OR EXISTS (
        SELECT 1 FROM work WHERE state = 2 AND locked_until <= ?1 AND seq NOT IN (SELECT row FROM torn_work)
    )
    OR EXISTS (SELECT 1 FROM sessions WHERE held = 1 AND locked_until <= ?1)
