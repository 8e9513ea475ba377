-- Forgets what is listed: the new table has no such messages.
DELETE FROM torn_messages
