-- Lists sessions whose lease ends later than any lease can that was granted up to now: the clock was set back
-- since (S16). In a bounded batch.
SELECT id FROM sessions
WHERE held = 1 AND locked_until > ?1 + (SELECT longest_lease FROM counter WHERE id = 1)
ORDER BY locked_until DESC LIMIT ?2
