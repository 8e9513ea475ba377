-- A session has no ready activity of a tag.
DELETE FROM heads WHERE session = ?1 AND tag = ?2
