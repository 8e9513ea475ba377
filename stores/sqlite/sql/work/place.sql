-- Reads the session and the tag of an activity, whose head must be updated when the activity is removed or
-- becomes available. The text is read too: a torn row fails here, before it is changed.
SELECT session, tag, item FROM work WHERE seq = (SELECT ?1 WHERE ?1 NOT IN (SELECT row FROM torn_work))
