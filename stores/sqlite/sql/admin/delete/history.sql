-- Removes the histories of an instance.
DELETE FROM history WHERE key = ?1
