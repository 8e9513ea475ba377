-- Gives all leases back.
SELECT {name}.abandon_turns(ARRAY(SELECT lock_token FROM {name}.instance_locks WHERE lock_token IS NOT NULL), '{NULL}', '{t}', 1000000)
