-- Reads the session, the tag and the route of an activity.
SELECT session, tag, route FROM work WHERE seq = ?1
