-- Lists instances whose lease has ended (S5), in a bounded batch.
SELECT key FROM instances WHERE turn = 2 AND locked_until <= ?1 ORDER BY locked_until LIMIT ?2
