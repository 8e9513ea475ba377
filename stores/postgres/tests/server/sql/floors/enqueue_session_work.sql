-- Queues an activity of a session.
SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', '', 's{run}', NULL, {now})
