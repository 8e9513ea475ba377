-- Starts an instance.
SELECT {name}.start_instances('{i{run}}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', {now})
