-- Removes the row of an instance.
DELETE FROM instances WHERE key = ?1
