-- Lets a message that was set aside where it is, torn, come back as a row of the new table: ?2 is its text,
-- ?3 its instance, ?4 whether it starts an execution, ?5 when it was due.
UPDATE set_aside SET payload = ?2, torn = NULL, instance = coalesce(instance, ?3), starts = ?4, due = ?5
WHERE id = ?1
