-- Applies the key-value changes of commits: clears all keys of some instances, then sets or clears single
-- keys (one row per key, NULL clears). When an execution has ended, its changes (layer 1) are merged into the
-- values that the next execution starts from (layer 0).
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.change_kv(
    p_instances TEXT[], p_statuses TEXT[], p_clears BOOLEAN[],
    p_kv_of INTEGER[], p_kv_keys TEXT[], p_kv_values TEXT[], p_kv_updated BIGINT[]
) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_over TEXT[];
BEGIN
    IF true = ANY (p_clears) THEN
        UPDATE {schema}.kv AS k
        SET value = NULL, updated_ms = 0
        FROM unnest(p_instances, p_clears) AS c (instance_id, clears)
        WHERE c.clears AND k.instance_id = c.instance_id AND k.instance_id = ANY (p_instances)
            AND k.layer = 1;

        INSERT INTO {schema}.kv (instance_id, layer, key, value, updated_ms)
        SELECT k.instance_id, 1, k.key, NULL, 0
        FROM unnest(p_instances, p_clears) AS c (instance_id, clears)
        JOIN {schema}.kv AS k ON k.instance_id = c.instance_id AND k.instance_id = ANY (p_instances)
            AND k.layer = 0
        WHERE c.clears
        ON CONFLICT (instance_id, layer, key) DO NOTHING;
    END IF;

    IF cardinality(p_kv_of) > 0 THEN
        INSERT INTO {schema}.kv (instance_id, layer, key, value, updated_ms)
        SELECT p_instances[k.of], 1, k.key, k.value, k.updated
        FROM unnest(p_kv_of, p_kv_keys, p_kv_values, p_kv_updated) AS k (of, key, value, updated)
        WHERE p_instances[k.of] IS NOT NULL
        ON CONFLICT (instance_id, layer, key) DO UPDATE SET value = excluded.value,
            updated_ms = excluded.updated_ms;
    END IF;

    IF 'Running' <> ANY (p_statuses) THEN
        v_over := ARRAY(
            SELECT c.instance_id FROM unnest(p_instances, p_statuses) AS c (instance_id, status)
            WHERE c.status <> 'Running'
              AND (SELECT 1 FROM {schema}.kv AS k WHERE k.instance_id = c.instance_id AND k.layer = 1
                  LIMIT 1) = 1
        );
        IF cardinality(v_over) > 0 THEN
            DELETE FROM {schema}.kv AS k
            USING {schema}.kv AS changed
            WHERE k.instance_id = ANY (v_over) AND k.layer = 0
              AND changed.instance_id = k.instance_id AND changed.instance_id = ANY (v_over)
                  AND changed.layer = 1 AND changed.key = k.key AND changed.value IS NULL;

            INSERT INTO {schema}.kv (instance_id, layer, key, value, updated_ms)
            SELECT k.instance_id, 0, k.key, k.value, k.updated_ms FROM {schema}.kv AS k
            WHERE k.instance_id = ANY (v_over) AND k.layer = 1 AND k.value IS NOT NULL
            ON CONFLICT (instance_id, layer, key) DO UPDATE SET value = excluded.value,
                updated_ms = excluded.updated_ms;

            DELETE FROM {schema}.kv AS k WHERE k.instance_id = ANY (v_over) AND k.layer = 1;
        END IF;
    END IF;
END
$function$
