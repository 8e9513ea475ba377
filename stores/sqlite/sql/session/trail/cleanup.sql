-- Removes entries of trails among the ?1 oldest ones: those from up to ?2, those that are not among the
-- last ?3 changes, and those from behind ?4, which were written before the clock was set back.
DELETE FROM session_trail
WHERE id IN (
    SELECT id FROM (SELECT id, at FROM session_trail WHERE id > 0 ORDER BY id LIMIT ?1)
    WHERE at <= ?2 OR id <= (SELECT max(id) FROM session_trail) - ?3 OR at > ?4
)
