-- Raises SF005 if one of the given instances is alive and p_force is not set, and SF006 if a child of a given
-- instance is not given too. If several instances are at fault, the one with the lowest id is reported.
-- Locks: none. The caller has locked `instance_locks` of all given instances.
CREATE OR REPLACE FUNCTION {schema}.refuse_deletion(p_instances TEXT[], p_force BOOLEAN)
RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_alive  TEXT;
    v_child  TEXT;
    v_parent TEXT;
BEGIN
    IF NOT coalesce(p_force, false) THEN
        SELECT min(alive.instance_id COLLATE "C") INTO v_alive
            FROM {schema}.alive_instances(p_instances) AS alive;
    END IF;
    SELECT child.instance_id, child.parent_instance_id INTO v_child, v_parent
    FROM {schema}.instances AS child
    WHERE child.parent_instance_id = ANY (p_instances)
      AND NOT EXISTS (SELECT 1 FROM unnest(p_instances) AS given(id) WHERE given.id = child.instance_id)
    ORDER BY child.parent_instance_id, child.instance_id LIMIT 1;

    IF v_alive IS NOT NULL AND (v_parent IS NULL OR v_alive COLLATE "C" <= v_parent COLLATE "C") THEN
        RAISE EXCEPTION 'instance ''%'' is still running: cancel it first, or use force', v_alive
            USING ERRCODE = 'SF005';
    END IF;
    IF v_child IS NOT NULL THEN
        RAISE EXCEPTION
            '''%'' is a child of ''%'' and not in the list: delete the whole tree (tree traversal)',
            v_child, v_parent
            USING ERRCODE = 'SF006';
    END IF;
END
$function$
