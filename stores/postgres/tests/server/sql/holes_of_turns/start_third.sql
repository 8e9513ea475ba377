-- Starts an instance.
SELECT {name}.start_instances('{c}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', 1000000)
