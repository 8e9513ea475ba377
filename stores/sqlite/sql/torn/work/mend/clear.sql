-- Forgets what is listed: the new table has no such activities.
DELETE FROM torn_work
