-- Starts an instance and leases it, for a minute.
SELECT {name}.start_instances('{i{run}}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', {now});
SELECT * FROM {name}.fetch_turns({now}, 60000, 1);
