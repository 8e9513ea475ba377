-- Deletes what ended, in a transaction that stays open.
BEGIN;
SELECT {name}.delete_instance_bulk(NULL, NULL, 10);
