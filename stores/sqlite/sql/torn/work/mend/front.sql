-- Reads the columns of an activity that stand in front of its text.
SELECT key, execution, activity, attempts, tag, unreadable, epoch, worker, token FROM work WHERE seq = ?1
