-- Notes that functions were made from their files.
INSERT INTO {schema}.steadfast_functions (name, hash, made_by)
SELECT f.name, f.hash, $3 FROM unnest($1::text[], $2::text[]) AS f (name, hash)
ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, made_by = excluded.made_by, made_at = excluded.made_at
