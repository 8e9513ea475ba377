-- Sends messages of ten bytes to an instance that is started then, and to one that is known.
SELECT {name}.send_messages('{a,a,a}', '{first_____,second____,third_____}', '{NULL,NULL,NULL}', '{f,f,f}', '{NULL,NULL,NULL}', NULL);
SELECT {name}.start_instances('{a}', '{start_____}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', NULL);
SELECT {name}.send_messages('{b,b}', '{first_____,second____}', '{NULL,NULL}', '{f,f}', '{NULL,NULL}', NULL);
INSERT INTO {name}.history (instance_id, execution_id, event_id, event_type, event_data, created_at)
VALUES ('b', 1, 1, 'x', 'x', now());
