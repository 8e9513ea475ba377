-- Finds the oldest ready activity of a session for each tag.
SELECT tag, head FROM heads WHERE session = ?1
