-- Deletes root instances that have ended and match the filter, oldest first, each with all its descendants. A
-- tree that contains an alive instance stays, and so does a tree that changes before it is locked. A child
-- whose parent was deleted counts as a root.
-- p_instances NULL: all instances. p_completed_before: only roots that ended before this time (Unix
-- milliseconds), NULL: all. p_limit: the most roots that one call deletes.
-- The planner settings make the server read the roots in index order and only as many as are needed. With
-- scans and sorts allowed it would read all of them first.
-- Locks: `instance_locks` of all trees to delete in the order of instance_id, then the locks of
-- erase_instances.
CREATE OR REPLACE FUNCTION {schema}.delete_instance_bulk(
    p_instances TEXT[], p_completed_before BIGINT, p_limit BIGINT,
    p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL, p_now_ms BIGINT DEFAULT NULL
)
RETURNS TABLE(instances BIGINT, executions BIGINT, events BIGINT, queued BIGINT, deleted TEXT[])
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_cursor REFCURSOR;
    v_early  TEXT[];
    v_roots  TEXT[] := '{}';
    v_all    TEXT[] := '{}';
    v_root   TEXT;
    v_tree   TEXT[];
BEGIN
    IF p_instances IS NULL AND p_completed_before IS NOT NULL THEN
        -- If no more of them ended in time than the call may delete, the others are not looked at.
        v_early := ARRAY(SELECT early.instance_id FROM {schema}.early_roots(p_completed_before, p_limit + 1)
            AS early);
    END IF;
    IF cardinality(v_early) <= p_limit THEN
        OPEN v_cursor FOR SELECT root.instance_id FROM {schema}.named_roots(v_early,
            p_completed_before) AS root;
    ELSIF p_instances IS NULL THEN
        OPEN v_cursor FOR SELECT root.instance_id FROM {schema}.ended_roots(p_completed_before) AS root;
    ELSE
        OPEN v_cursor FOR SELECT root.instance_id FROM {schema}.named_roots(p_instances,
            p_completed_before) AS root;
    END IF;
    WHILE cardinality(v_roots) < p_limit LOOP
        FETCH v_cursor INTO v_root;
        EXIT WHEN NOT FOUND;
        v_tree := ARRAY(SELECT tree.instance_id FROM {schema}.instance_tree(v_root) AS tree);
        CONTINUE WHEN EXISTS (SELECT 1 FROM {schema}.alive_instances(v_tree));
        v_roots := v_roots || v_root;
        v_all := v_all || v_tree;
    END LOOP;
    CLOSE v_cursor;

    -- Judge again under the locks: a tree that is alive, has grown or does not match any more stays.
    PERFORM {schema}.lock_instances(v_all);
    v_roots := ARRAY(SELECT root.instance_id FROM {schema}.named_roots(v_roots, p_completed_before) AS root);
    deleted := '{}';
    FOREACH v_root IN ARRAY v_roots LOOP
        v_tree := ARRAY(SELECT tree.instance_id FROM {schema}.instance_tree(v_root) AS tree);
        CONTINUE WHEN EXISTS (SELECT unnest(v_tree) EXCEPT SELECT unnest(v_all));
        CONTINUE WHEN EXISTS (SELECT 1 FROM {schema}.alive_instances(v_tree));
        deleted := deleted || v_tree;
    END LOOP;
    SELECT erased.instances, erased.executions, erased.events, erased.queued
    INTO instances, executions, events, queued
    FROM {schema}.erase_instances(deleted, p_now_ms) AS erased;
    -- lock_instances inserted rows for instances that another transaction deleted meanwhile: remove them.
    IF cardinality(deleted) < cardinality(v_all) THEN
        PERFORM {schema}.forget_instances(v_all);
    END IF;
    PERFORM {schema}.notify(p_notify, p_me);
    RETURN NEXT;
END
$function$
