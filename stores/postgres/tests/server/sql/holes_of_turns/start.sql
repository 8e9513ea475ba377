-- Starts an instance.
SELECT {name}.start_instances('{a}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', NULL)
