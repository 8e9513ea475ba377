-- Queues an activity of each of many sessions, or many of one.
SELECT {name}.enqueue_work('many', 'many', 1, n, '', '', {session}, NULL, {now}) FROM generate_series(1, 300) AS n
