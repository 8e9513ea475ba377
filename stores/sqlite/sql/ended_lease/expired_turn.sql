-- Remembers the messages of a lease that has expired: its holder may excuse the delivery (S5).
INSERT INTO ended_leases (token, row, kind, look_at)
SELECT messages.token, messages.seq, 0, ?2
FROM instances JOIN messages ON messages.key = instances.key AND messages.token = instances.token
WHERE instances.key = ?1 AND messages.state = 1 AND messages.seq NOT IN (SELECT row FROM torn_messages)
ON CONFLICT DO NOTHING
