-- Notes the oldest ready activity of a session and tag.
INSERT INTO heads (session, tag, head, owner) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (session, tag) DO UPDATE SET head = excluded.head, owner = excluded.owner
