-- Gives the activity back, and it is visible a moment later.
SELECT * FROM {name}.abandon_work_items(
    ARRAY(SELECT lock_token FROM {name}.worker_queue WHERE instance_id = 'i{run}'), '{1}', '{true}', {now} - 5000)
