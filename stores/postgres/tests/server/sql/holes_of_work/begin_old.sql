-- Begins a transaction that sees no more than there is now.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT 1;
