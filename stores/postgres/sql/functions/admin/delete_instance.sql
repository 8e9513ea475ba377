-- Deletes an instance and all its descendants. Checks and deletion are one transaction, so an instance that
-- comes to life meanwhile is not deleted unnoticed. If the tree grows while it is being locked, it is read
-- and locked again, at most 16 times.
-- Raises SF007 if there is no such instance, SF008 if it is a child whose parent still exists, and SF005 if
-- an instance of the tree is alive and p_force is not set.
-- Locks: `instance_locks` of the tree in the order of instance_id, then the locks of erase_instances.
CREATE OR REPLACE FUNCTION {schema}.delete_instance(
    p_instance TEXT, p_force BOOLEAN, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL,
    p_now_ms BIGINT DEFAULT NULL
)
RETURNS TABLE(instances BIGINT, executions BIGINT, events BIGINT, queued BIGINT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_parent TEXT;
    v_tree   TEXT[];
    v_seen   TEXT[] := '{}';
    v_found  BOOLEAN;
BEGIN
    FOR v_round IN 1..16 LOOP
        v_tree := ARRAY(SELECT tree.instance_id FROM {schema}.instance_tree(p_instance) AS tree);
        EXIT WHEN v_tree <@ v_seen;
        PERFORM {schema}.lock_instances(v_tree);
        v_seen := v_tree;
    END LOOP;

    SELECT true, known.parent_instance_id INTO v_found, v_parent
    FROM {schema}.instances AS known WHERE known.instance_id = p_instance;
    IF v_found IS NULL THEN
        RAISE EXCEPTION 'instance ''%'' was not found', p_instance USING ERRCODE = 'SF007';
    END IF;
    IF EXISTS (SELECT 1 FROM {schema}.executions AS execution WHERE execution.instance_id = v_parent) THEN
        RAISE EXCEPTION '''%'' is a sub-orchestration of ''%'': delete the root orchestration instead',
            p_instance, v_parent
            USING ERRCODE = 'SF008';
    END IF;
    PERFORM {schema}.refuse_deletion(v_tree, p_force);
    RETURN QUERY SELECT * FROM {schema}.erase_instances(v_tree, p_now_ms);
    PERFORM {schema}.notify(p_notify, p_me);
END
$function$
