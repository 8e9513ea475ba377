-- Removes the watches of an execution.
DELETE FROM watchers WHERE key = ?1 AND execution = ?2
