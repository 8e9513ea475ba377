-- Lists the sessions and tags of activities that have a session or a route, by an index alone.
SELECT seq, session, tag FROM work INDEXED BY work_session WHERE session IS NOT NULL
