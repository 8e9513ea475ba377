-- Forgets what is listed: the rebuilt queue has no such activities.
DELETE FROM torn_work
