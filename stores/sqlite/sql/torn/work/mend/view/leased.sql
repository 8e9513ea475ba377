-- Lists the leased activities and until when they are, by an index alone.
SELECT seq, locked_until FROM work INDEXED BY work_leased WHERE state = 2
