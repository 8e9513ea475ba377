-- Deletes root instances that ended at least p_ended_for_ms ago, oldest end first, each with all its
-- descendants (S16). A child whose parent is gone counts as a root. One call looks at up to 64 roots after
-- the place p_after_ms, p_after_ord, deletes at most p_limit of them, and no further one once it has found
-- 1,000 instances: a caller goes on at the place that it returns, until that is NULL. With p_limit 0 it only
-- returns the place of the first root. A tree that contains an alive instance stays, and so does a tree that
-- changes before it is locked.
-- Locks: `instance_locks` of all trees to delete in the order of instance_id, then the locks of
-- erase_instances.
CREATE OR REPLACE FUNCTION {schema}.delete_ended(
    p_ended_for_ms BIGINT, p_limit BIGINT, p_after_ms BIGINT, p_after_ord BIGINT,
    p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL
)
RETURNS TABLE(instances BIGINT, executions BIGINT, events BIGINT, queued BIGINT, roots BIGINT,
    next_ms BIGINT, next_ord BIGINT)
LANGUAGE plpgsql
{planner}
SET enable_sort TO off
AS $function$
#variable_conflict use_column
DECLARE
    v_looks     CONSTANT INTEGER := 64;
    v_instances CONSTANT INTEGER := 1000;
    v_before    CONSTANT BIGINT := {schema}.now_ms(p_now_ms) - p_ended_for_ms;
    v_root      RECORD;
    v_seen      INTEGER := 0;
    v_roots     TEXT[] := '{}';
    v_all       TEXT[] := '{}';
    v_deleted   TEXT[] := '{}';
    v_id        TEXT;
    v_tree      TEXT[];
BEGIN
    roots := 0;
    FOR v_root IN
        SELECT i.instance_id, i.ended_ms, i.ord, i.parent_instance_id AS parent FROM {schema}.instances AS i
        WHERE (i.parent_instance_id IS NULL OR i.is_orphan) AND i.ended_ms IS NOT NULL
          AND (i.ended_ms + 0, i.ord) > (p_after_ms, p_after_ord) AND i.ended_ms + 0 <= v_before
        ORDER BY i.ended_ms + 0, i.ord LIMIT v_looks
    LOOP
        EXIT WHEN cardinality(v_all) >= v_instances OR cardinality(v_roots) >= greatest(p_limit, 1);
        v_seen := v_seen + 1;
        next_ms := v_root.ended_ms;
        next_ord := v_root.ord;
        EXIT WHEN p_limit = 0;
        CONTINUE WHEN (SELECT 1 FROM {schema}.instances AS p WHERE p.instance_id = v_root.parent) = 1;
        v_tree := ARRAY(SELECT tree.instance_id FROM {schema}.instance_tree(v_root.instance_id) AS tree);
        CONTINUE WHEN EXISTS (SELECT 1 FROM {schema}.alive_instances(v_tree));
        v_roots := v_roots || v_root.instance_id;
        v_all := v_all || v_tree;
    END LOOP;
    IF v_seen < v_looks AND cardinality(v_roots) < p_limit AND cardinality(v_all) < v_instances THEN
        -- There are no further roots.
        next_ms := NULL;
        next_ord := NULL;
    END IF;

    -- Judge again under the locks.
    PERFORM {schema}.lock_instances(v_all);
    FOREACH v_id IN ARRAY v_roots LOOP
        v_tree := ARRAY(SELECT tree.instance_id FROM {schema}.instance_tree(v_id) AS tree);
        CONTINUE WHEN EXISTS (SELECT unnest(v_tree) EXCEPT SELECT unnest(v_all));
        CONTINUE WHEN (
            SELECT (i.parent_instance_id IS NULL OR i.is_orphan) AND i.ended_ms <= v_before
                AND (SELECT 1 FROM {schema}.instances AS p WHERE p.instance_id = i.parent_instance_id) IS NULL
            FROM {schema}.instances AS i
            WHERE i.instance_id = v_id
        ) IS NOT TRUE;
        CONTINUE WHEN EXISTS (SELECT 1 FROM {schema}.alive_instances(v_tree));
        v_deleted := v_deleted || v_tree;
        roots := roots + 1;
    END LOOP;
    SELECT erased.instances, erased.executions, erased.events, erased.queued
    INTO instances, executions, events, queued
    FROM {schema}.erase_instances(v_deleted, p_now_ms) AS erased;
    -- lock_instances inserted rows for instances that another transaction deleted meanwhile: remove them.
    IF cardinality(v_deleted) < cardinality(v_all) THEN
        PERFORM {schema}.forget_instances(v_all);
    END IF;
    IF roots > 0 THEN
        PERFORM {schema}.notify(p_notify, p_me);
    END IF;
    RETURN NEXT;
END
$function$
