-- Writes the newest start of a node: its number, its id, and when its process started (S13).
INSERT INTO nodes (node, incarnation, start_number, start_id, started_at) VALUES (?1, ?2, ?2, ?3, ?4)
ON CONFLICT (node) DO UPDATE SET incarnation = excluded.incarnation, start_number = excluded.start_number,
    start_id = excluded.start_id, started_at = excluded.started_at
