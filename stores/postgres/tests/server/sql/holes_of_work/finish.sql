-- Finishes an activity.
SELECT code FROM {name}.finish_work_items('{{token}}', '{NULL}', '{NULL}', '{NULL}', {now})
