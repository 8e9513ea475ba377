-- Lists activities whose lease ends later than any lease granted by now can end (S16), in a bounded batch.
SELECT seq, session, tag FROM work
WHERE state = 2 AND locked_until > ?1 + (SELECT longest_lease FROM counter WHERE id = 1)
ORDER BY locked_until DESC LIMIT ?2
