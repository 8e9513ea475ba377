-- Reads the newest start of a node: its number, its id, and when its process started.
SELECT incarnation, iif(start_number = incarnation, start_id, ''),
    iif(start_number = incarnation, started_at, 0)
FROM nodes WHERE node = ?1
