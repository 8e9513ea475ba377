-- Writes the head of a session for a tag: its oldest ready activity, and since when a ready activity of that
-- tag can be leased. In a serial session (?5) only the oldest one can be leased.
INSERT INTO heads (session, tag, head, owner, since)
VALUES (?1, ?2, ?3, ?4, coalesce(iif(?5,
    (SELECT work.since FROM work WHERE work.seq = ?3),
    (SELECT min(work.since) FROM work WHERE work.session = ?1 AND work.tag = ?2 AND work.state = 1
        AND work.seq NOT IN (SELECT row FROM torn_work))
), 0))
ON CONFLICT (session, tag) DO UPDATE SET head = excluded.head, owner = excluded.owner, since = excluded.since
