-- Starts an instance and queues an activity.
SELECT {name}.start_instances('{probe}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', NULL);
SELECT {name}.enqueue_work('x', 'probe', 1, 1, '', '', NULL, NULL);
