-- Reads the session, the tag and the route of an activity.
SELECT session, tag, route FROM work WHERE seq = (SELECT ?1 WHERE ?1 NOT IN (SELECT row FROM torn_work))
