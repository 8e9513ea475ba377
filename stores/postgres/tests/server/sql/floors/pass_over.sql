-- Passes over the message of the lease, which is tried again at a moment that is over.
SELECT p.* FROM {name}.instance_locks AS l
CROSS JOIN LATERAL {name}.pass_over_messages(l.lock_token, l.leased, '{x}', 1, 10, {now} - 10) AS p
WHERE l.instance_id = 'i{run}'
