-- Removes the watches of an instance: it is told of no session from then on.
DELETE FROM watchers WHERE key = ?1
