-- Forgets what is listed: the rebuilt queue has no such messages.
DELETE FROM torn_messages
