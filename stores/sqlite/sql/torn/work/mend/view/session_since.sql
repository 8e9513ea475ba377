-- Lists since when the ready activities that stand at a session can be leased, by an index alone.
SELECT seq, since FROM work INDEXED BY work_session_since WHERE state = 1 AND session IS NOT NULL
