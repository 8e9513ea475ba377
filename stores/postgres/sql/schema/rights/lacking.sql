-- Lists rights that the current role lacks on the tables and sequences $2 and the functions $3 of the schema
-- $1, at most five. Locks: none.
SELECT lacking.what
FROM (
    SELECT needed.name || ' on table ' || c.relname AS what, 1 AS place
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed (name)
    WHERE n.nspname = $1 AND c.relname = ANY ($2)
      AND CASE WHEN c.relkind = 'r' THEN NOT has_table_privilege(c.oid, needed.name) END
    UNION ALL
    SELECT 'USAGE on sequence ' || c.relname, 2
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = ANY ($2)
      AND CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE') END
    UNION ALL
    SELECT 'EXECUTE on function ' || p.proname, 3
    FROM pg_proc AS p
    JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname = $1 AND p.proname = ANY ($3) AND NOT has_function_privilege(p.oid, 'EXECUTE')
) AS lacking
ORDER BY lacking.place, lacking.what LIMIT 5
