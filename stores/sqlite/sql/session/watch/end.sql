-- Ends what an execution watches.
DELETE FROM watchers WHERE key = ?1 AND execution = ?2
