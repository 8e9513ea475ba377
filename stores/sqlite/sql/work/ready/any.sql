-- Tells whether any activity is ready: without a session, on a session, or routed.
SELECT EXISTS (
        SELECT 1 FROM work WHERE state = 1 AND session IS NULL AND seq NOT IN (SELECT row FROM torn_work)
    )
    OR EXISTS (
        SELECT 1 FROM work WHERE state = 1 AND session IS 0 AND seq NOT IN (SELECT row FROM torn_work)
    )
    OR EXISTS (SELECT 1 FROM heads)
    OR EXISTS (
        SELECT 1 FROM routes JOIN work ON work.session = -routes.id AND work.state = 1
        WHERE routes.kind IN (1, 2) AND work.seq NOT IN (SELECT row FROM torn_work)
    )
