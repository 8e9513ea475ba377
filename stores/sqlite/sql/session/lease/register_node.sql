-- Gives a node the number of its newest start (S13).
INSERT INTO nodes (node, incarnation) VALUES (?1, ?2) ON CONFLICT (node) DO UPDATE SET incarnation = excluded.incarnation
