-- Removes the watches of all executions of an instance: they get no more messages about claims of sessions.
DELETE FROM watchers WHERE key = ?1
