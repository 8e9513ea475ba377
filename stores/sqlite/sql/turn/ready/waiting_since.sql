-- Finds the ready instance that waits for longest, and since when. One look at its index (S20).
SELECT key, since FROM instances WHERE turn = 1 ORDER BY since LIMIT 1
