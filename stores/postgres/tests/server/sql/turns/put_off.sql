-- Puts the start of an instance off for an hour, and sends it a message.
SELECT {name}.abandon_turns(ARRAY(SELECT token FROM {name}.fetch_turns(NULL, 30000, 1)), '{3600000}', '{true}', NULL);
SELECT {name}.send_messages('{a}', '{y}', '{NULL}', '{false}', '{NULL}', NULL);
COMMIT
