-- Removes the head of a session for a tag: it has no ready activity of that tag.
DELETE FROM heads WHERE session = ?1 AND tag = ?2
