-- Lists the activities that have a session or a route: session, state and tag, by an index alone.
SELECT seq, session, state, tag FROM work INDEXED BY work_session WHERE session IS NOT NULL
