-- Sends the start of the instance now.
SELECT {name}.send_messages('{i{run}}', '{x}', '{NULL}', '{true}', '{NULL}', {now})
