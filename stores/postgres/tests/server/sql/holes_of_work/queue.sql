-- Queues an activity.
SELECT {name}.enqueue_work('{item}', 'i', 1, 1, {tag}, {scope}, {session}, NULL, {now})
