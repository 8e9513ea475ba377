-- Removes an activity in no way of ours.
DELETE FROM {name}.worker_queue WHERE work_item = '{item}'
