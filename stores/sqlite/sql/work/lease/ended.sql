-- Lists activities whose lease has ended (S5), in a bounded batch.
SELECT seq, session, tag FROM work WHERE state = 2 AND locked_until <= ?1 ORDER BY locked_until LIMIT ?2
