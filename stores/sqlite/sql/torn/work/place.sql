-- Reads the session, the tag and the instance of an activity, which stand in front of its text.
SELECT session, tag, key FROM work WHERE seq = ?1
