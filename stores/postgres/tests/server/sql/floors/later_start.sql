-- Starts an instance that becomes ready a second later, and that was some seconds ago.
SELECT {name}.start_instances('{i{run}}', '{x}', '{1000}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', {now} - 5000);
