-- Tells whether there is ready work of a session, or work or a session that becomes free because its time has
-- come.
SELECT EXISTS (SELECT 1 FROM heads)
    OR EXISTS (SELECT 1 FROM work WHERE state = 0 AND visible_at <= ?1)
    OR EXISTS (SELECT 1 FROM work WHERE state = 2 AND locked_until <= ?1)
    OR EXISTS (SELECT 1 FROM sessions WHERE held = 1 AND locked_until <= ?1)
