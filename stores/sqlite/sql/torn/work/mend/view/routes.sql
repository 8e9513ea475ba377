-- Lists the routes of activities that were refused, by an index alone.
SELECT seq, route FROM work INDEXED BY work_routed WHERE route IS NOT NULL
