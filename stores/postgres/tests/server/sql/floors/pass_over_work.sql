-- Passes over the activity, which is tried again at a moment that is over.
SELECT p.* FROM {name}.worker_queue AS w
CROSS JOIN LATERAL {name}.pass_over_work(w.lock_token, 'x', 1, 10, false, {now} - 10) AS p
WHERE w.instance_id = 'i{run}'
