-- Reads a route by its number.
SELECT id, name, version, pin, tag FROM routes WHERE id = ?1
