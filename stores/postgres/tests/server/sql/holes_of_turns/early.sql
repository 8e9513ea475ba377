-- Sends a message to an instance that is not there yet, later.
SELECT {name}.send_messages('{a}', '{x}', '{100000}', '{false}', '{NULL}', 1000000)
