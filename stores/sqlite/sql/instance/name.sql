-- Reads the id of an instance.
SELECT instance FROM instances WHERE key = ?1
