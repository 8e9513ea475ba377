-- Finds the longest waiting ready instance, and since when it waits: one look at its index (S20).
SELECT key, since FROM instances WHERE turn = 1 ORDER BY since LIMIT 1
