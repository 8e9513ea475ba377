-- Lists instances whose lease ends later than any lease granted by now can end (S16), in a bounded batch.
SELECT key FROM instances
WHERE turn = 2 AND locked_until > ?1 + (SELECT longest_lease FROM counter WHERE id = 1)
ORDER BY locked_until DESC LIMIT ?2
