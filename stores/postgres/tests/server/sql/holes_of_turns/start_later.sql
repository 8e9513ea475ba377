-- Starts an instance, later.
SELECT {name}.start_instances('{a}', '{x}', '{50}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', 1000000)
