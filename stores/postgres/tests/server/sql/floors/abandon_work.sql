-- Gives the activity back.
SELECT * FROM {name}.abandon_work_items(
    ARRAY(SELECT lock_token FROM {name}.worker_queue WHERE instance_id = 'i{run}'), '{NULL}', '{true}', {now})
