-- Lists the tags of ready activities without a session, by an index alone.
SELECT seq, tag FROM work INDEXED BY work_free WHERE state = 1 AND session IS NULL
