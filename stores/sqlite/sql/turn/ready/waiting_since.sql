-- Finds the ready instance that has waited for the longest, and since when it waits: one index lookup (S20).
SELECT key, since FROM instances WHERE turn = 1 ORDER BY since LIMIT 1
