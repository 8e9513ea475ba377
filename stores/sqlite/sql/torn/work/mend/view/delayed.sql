-- Lists the delayed activities and until when they are, by an index alone.
SELECT seq, visible_at FROM work INDEXED BY work_due WHERE state = 0
