-- Starts many instances, and then another.
SELECT {name}.start_instances(array_agg('i' || n), array_agg('x'::text), array_agg(NULL::bigint), array_agg(NULL::text),
    '{}', '{}', '{}', '{}', '{}', '{}', 1000000)
FROM generate_series(1, 700) AS n;
SELECT {name}.start_instances('{other}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', 1000000)
