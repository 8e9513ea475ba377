-- Gives the lease of the instance back, and its message is visible a moment later.
SELECT * FROM {name}.abandon_turns(
    ARRAY(SELECT lock_token FROM {name}.instance_locks WHERE instance_id = 'i{run}'), '{1}', '{true}', {now} - 5000)
