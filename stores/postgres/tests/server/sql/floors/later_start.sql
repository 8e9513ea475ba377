-- Starts an instance that becomes ready in a second.
SELECT {name}.start_instances('{i{run}}', '{x}', '{1000}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', {now} - 1000);
