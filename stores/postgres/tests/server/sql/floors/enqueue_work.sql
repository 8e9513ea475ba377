-- Queues an activity.
SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', '', NULL, NULL, {now})
