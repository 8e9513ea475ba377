-- Locks instances for a transaction that sends to them or ends their leases; one that nothing referred to gets a row.
-- Locks: instance_locks in the order of instance_id, rows that are missing first. A row that vanishes between the two (its
-- instance was deleted) is made again; after a bounded number of such losses the transaction gives up and is tried again.
CREATE OR REPLACE FUNCTION {schema}.lock_instances(p_ids TEXT[]) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_ids TEXT[] := ARRAY(SELECT DISTINCT id COLLATE "C" FROM unnest(p_ids) AS id WHERE id IS NOT NULL ORDER BY 1);
    v_locked INTEGER;
BEGIN
    FOR v_try IN 1..100 LOOP
        INSERT INTO {schema}.instance_locks (instance_id)
        SELECT id FROM unnest(v_ids) AS id
        WHERE (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = id) IS NULL
        ORDER BY id COLLATE "C"
        ON CONFLICT DO NOTHING;

        SELECT count(*) INTO v_locked FROM (
            SELECT 1 FROM {schema}.instance_locks AS l
            WHERE l.instance_id = ANY (v_ids)
            ORDER BY l.instance_id
            FOR UPDATE
        ) AS locked;
        IF v_locked = cardinality(v_ids) THEN
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'instances are deleted as fast as they are sent to' USING ERRCODE = 'serialization_failure';
END
$function$
