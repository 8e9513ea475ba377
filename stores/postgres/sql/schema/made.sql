-- Notes that a function was made from its file.
INSERT INTO {schema}.steadfast_functions (name, hash) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET hash = excluded.hash
