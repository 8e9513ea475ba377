-- Records that functions were created, with the hash of their files.
INSERT INTO {schema}.steadfast_functions (name, arguments, hash, made_by)
SELECT f.name, f.arguments, f.hash, $4 FROM unnest($1::text[], $2::text[], $3::text[]) AS f (name, arguments,
    hash)
ON CONFLICT (name) DO UPDATE SET
    arguments = excluded.arguments, hash = excluded.hash, made_by = excluded.made_by,
    made_at = excluded.made_at
