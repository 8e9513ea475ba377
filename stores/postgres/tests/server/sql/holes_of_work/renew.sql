-- Extends the lease of an activity.
SELECT code FROM {name}.renew_work_items('{{token}}', '{30000}', {now})
