-- Gives the lease of the instance back.
SELECT * FROM {name}.abandon_turns(
    ARRAY(SELECT lock_token FROM {name}.instance_locks WHERE instance_id = 'i{run}'), '{NULL}', '{true}', {now})
