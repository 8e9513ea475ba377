-- Reads the session and the tag of an activity: its place in line.
SELECT session, tag FROM work WHERE seq = ?1
