-- Removes the watches of an execution: it gets no more messages about claims of sessions.
DELETE FROM watchers WHERE key = ?1 AND execution = ?2
