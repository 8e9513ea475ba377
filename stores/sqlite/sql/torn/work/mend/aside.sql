-- Lets an activity that was set aside where it is, torn, come back as a row of the new table: ?2 is its text,
-- ?3 its instance, ?4 and ?5 its execution and its id, ?6 its tag, ?7 and ?8 its session.
UPDATE set_aside SET payload = ?2, torn = NULL, instance = coalesce(instance, ?3), execution = ?4,
    activity = ?5, tag = ?6, session_scope = ?7, session_id = ?8
WHERE id = ?1
