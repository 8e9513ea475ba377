-- Begins a transaction that holds all instances but one, and stays open.
BEGIN;
SELECT 1 FROM {name}.instance_locks WHERE instance_id <> 'other' FOR UPDATE;
