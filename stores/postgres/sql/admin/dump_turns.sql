-- Describes who holds instances, for people who debug.
SELECT format('%s head %s token %s locked until %s carries %s pin %s', instance_id, head, lock_token,
    locked_until, leased, pin) AS line
FROM {schema}.instance_locks ORDER BY instance_id
