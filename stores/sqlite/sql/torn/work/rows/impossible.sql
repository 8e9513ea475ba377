-- Lists activities whose lease ends later than any lease can that was granted up to now, by an index alone,
-- in a bounded batch.
SELECT seq FROM work
WHERE state = 2 AND locked_until > ?1 + (SELECT longest_lease FROM counter WHERE id = 1)
  AND seq NOT IN (SELECT row FROM torn_work)
ORDER BY locked_until DESC LIMIT ?2
