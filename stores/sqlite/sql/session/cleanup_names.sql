-- Removes the rows of sessions that were closed or never claimed, that have no live lease, and that no work
-- refers to, other than what was given up where it is.
DELETE FROM sessions
WHERE is_row = 0 AND NOT (held = 1 AND locked_until > ?1) AND NOT EXISTS (
    SELECT 1 FROM work WHERE work.session = sessions.id
        AND NOT EXISTS (SELECT 1 FROM torn_work WHERE row = work.seq AND until IS NULL)
)
