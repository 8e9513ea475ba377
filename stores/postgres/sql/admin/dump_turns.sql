-- Describes the lease and the readiness of each instance in one line of text, for debugging. Locks: none.
SELECT format('%s head %s token %s locked until %s carries %s pin %s', instance_id, head, lock_token,
    locked_until, leased, pin) AS line
FROM {schema}.instance_locks ORDER BY instance_id
