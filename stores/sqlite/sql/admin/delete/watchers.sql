-- Ends what an instance watches.
DELETE FROM watchers WHERE key = ?1
