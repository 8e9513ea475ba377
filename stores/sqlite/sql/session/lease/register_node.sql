-- Writes the number of the newest start of a node (S13).
INSERT INTO nodes (node, incarnation) VALUES (?1, ?2) ON CONFLICT (node) DO UPDATE
    SET incarnation = excluded.incarnation
