-- Describes the functions of a schema: name, signature without defaults, body, full text.
SELECT p.proname::text AS name,
    format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) AS signature,
    p.prosrc AS body, pg_get_functiondef(p.oid) AS text
FROM pg_proc AS p
WHERE p.pronamespace = $1::text::regnamespace AND p.prokind = 'f'
ORDER BY 1, 2
