-- Begins a transaction that is never committed: the scratch schemas exist in it only. Bodies are not checked,
-- because functions may be made before those that they call.
BEGIN;
SET LOCAL check_function_bodies TO off;
