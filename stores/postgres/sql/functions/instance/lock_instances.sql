-- Locks instances for a transaction that sends to them or ends their leases. An instance without a row in
-- `instance_locks` gets one.
-- Locks: `instance_locks` in the order of instance_id. If rows are missing, they are inserted in the same
-- order, and all rows are locked again. If deletions keep removing rows in between, it raises
-- serialization_failure after 100 rounds, and the caller retries the transaction.
CREATE OR REPLACE FUNCTION {schema}.lock_instances(p_ids TEXT[]) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_wanted INTEGER;
    v_locked INTEGER;
BEGIN
    FOR v_try IN 1..100 LOOP
        SELECT (SELECT count(DISTINCT id) FROM unnest(p_ids) AS id), count(*) INTO v_wanted, v_locked
        FROM (
            SELECT 1 FROM {schema}.instance_locks AS l
            WHERE l.instance_id = ANY (p_ids)
            ORDER BY l.instance_id
            FOR UPDATE
        ) AS locked;
        IF v_locked = v_wanted THEN
            RETURN;
        END IF;
        INSERT INTO {schema}.instance_locks (instance_id)
        SELECT DISTINCT id COLLATE "C" FROM unnest(p_ids) AS id
        WHERE id IS NOT NULL AND (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = id) IS NULL
        ORDER BY 1
        ON CONFLICT DO NOTHING;
    END LOOP;
    RAISE EXCEPTION 'instances are deleted as fast as they are sent to'
        USING ERRCODE = 'serialization_failure';
END
$function$
