-- Gives an activity back.
SELECT code FROM {name}.abandon_work_items('{{token}}', '{NULL}', '{false}', {now})
