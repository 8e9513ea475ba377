-- Lists sessions whose lease has ended, in a bounded batch.
SELECT id FROM sessions WHERE held = 1 AND locked_until <= ?1 ORDER BY locked_until LIMIT ?2
