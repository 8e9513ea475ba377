-- Extends the lease of the instance to a moment that is over.
SELECT * FROM {name}.renew_turns(
    ARRAY(SELECT lock_token FROM {name}.instance_locks WHERE instance_id = 'i{run}'), '{1}', {now} - 10)
