-- Extends the lease of the activity to a moment that is over.
SELECT * FROM {name}.renew_work_items(
    ARRAY(SELECT lock_token FROM {name}.worker_queue WHERE instance_id = 'i{run}'), '{1}', {now} - 10)
