-- Finds the ready instance with the oldest message among those pinned to one engine version, or on one route
-- (S18).
SELECT head, key FROM instances WHERE turn = 1 AND pin = ?1 ORDER BY head LIMIT 1
