-- Begins a transaction that starts an instance, and stays open.
BEGIN;
SELECT {name}.start_instances('{old}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', 1000000);
