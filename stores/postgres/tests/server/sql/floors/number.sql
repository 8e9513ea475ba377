-- Begins a transaction that has its number.
BEGIN;
SELECT pg_current_xact_id();
