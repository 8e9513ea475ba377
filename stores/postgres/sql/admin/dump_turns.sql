-- Describes who holds instances, for people who debug.
SELECT format('%s head %s token %s locked until %s pin %s', instance_id, head, lock_token, locked_until, pin) AS line
FROM {schema}.instance_locks ORDER BY instance_id
