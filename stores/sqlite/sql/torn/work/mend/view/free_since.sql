-- Lists since when the ready activities without a session can be leased, by an index alone.
SELECT seq, since FROM work INDEXED BY work_since WHERE state = 1 AND session IS NULL
