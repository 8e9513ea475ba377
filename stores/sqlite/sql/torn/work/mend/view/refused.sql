-- Lists the activities that were refused while no live worker had their handler, by an index alone.
SELECT seq, route FROM work INDEXED BY work_refused WHERE refused = 1
