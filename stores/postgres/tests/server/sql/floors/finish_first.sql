-- Finishes the first activity of the session.
SELECT * FROM {name}.finish_work_items(
    ARRAY(SELECT lock_token FROM {name}.worker_queue WHERE instance_id = 'i{run}' AND state = 2), '{i{run}}', '{NULL}', '{NULL}', {now})
