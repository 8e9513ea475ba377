-- Lists activities whose lease has ended (S5), in a bounded batch.
SELECT seq, session, tag FROM work
WHERE state = 2 AND locked_until <= ?1 AND seq NOT IN (SELECT row FROM torn_work)
ORDER BY locked_until LIMIT ?2
