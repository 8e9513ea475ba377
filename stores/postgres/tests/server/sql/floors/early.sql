-- Sends a message to an instance whose start is still to come, and lets a fetch find that out.
SELECT {name}.start_instances('{i{run}}', '{x}', '{900000000000}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', {now});
SELECT {name}.send_messages('{i{run}}', '{x}', '{NULL}', '{false}', '{NULL}', {now});
SELECT * FROM {name}.fetch_turns({now}, 60000, 1);
