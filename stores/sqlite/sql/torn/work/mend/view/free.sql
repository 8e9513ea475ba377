-- Lists the ready activities without a session and their tags, by an index alone.
SELECT seq, tag FROM work INDEXED BY work_free WHERE state = 1 AND session IS NULL
