-- Returns the number of a route; a new route gets the next number.
INSERT INTO routes (kind, name, version, pin, tag) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (kind, name, version, pin, tag) DO UPDATE SET name = excluded.name RETURNING id
