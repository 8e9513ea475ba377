-- Locks work rows by id. Rows that do not exist are ignored.
-- Locks: `worker_queue` in the order of id.
CREATE OR REPLACE FUNCTION {schema}.lock_work(p_ids BIGINT[]) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    PERFORM 1
    FROM (SELECT wanted.id FROM unnest(p_ids) AS wanted (id) ORDER BY 1) AS wanted
    CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.worker_queue AS w WHERE w.id = wanted.id FOR UPDATE
    ) AS w;
END
$function$
