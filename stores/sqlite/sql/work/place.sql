-- Reads the session and the tag of an activity, whose head must be updated when the activity is removed or
-- becomes available.
SELECT session, tag FROM work WHERE seq = ?1
