-- Reads a route by its number.
SELECT id, kind, name, version, pin, tag FROM routes WHERE id = ?1
