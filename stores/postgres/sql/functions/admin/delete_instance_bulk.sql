-- Deletes roots that have ended and match the filter, each with all below it, oldest first. What is alive stays, and so
-- does a tree that changes while it is looked at. A child whose parent is gone counts as a root (F12, F13).
-- p_instances NULL: any; p_completed_before NULL: whenever it ended; p_limit bounds the roots.
-- Without sorts and scans the roots are read in their order, as many as are needed; with them a server that knows its tables
-- reads all of them first.
-- Locks: instance_locks of all that is deleted, then those of erase_instances.
CREATE OR REPLACE FUNCTION {schema}.delete_instance_bulk(
    p_instances TEXT[], p_completed_before BIGINT, p_limit BIGINT,
    p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL
)
RETURNS TABLE(instances BIGINT, executions BIGINT, events BIGINT, queued BIGINT, deleted TEXT[])
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_cursor REFCURSOR;
    v_roots  TEXT[] := '{}';
    v_all    TEXT[] := '{}';
    v_root   TEXT;
    v_tree   TEXT[];
BEGIN
    IF p_instances IS NULL THEN
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

    -- Decided again under the locks: what has come to life, has grown or does not match any more stays.
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
    FROM {schema}.erase_instances(deleted) AS erased;
    -- What others have deleted meanwhile got a row again when it was locked.
    IF cardinality(deleted) < cardinality(v_all) THEN
        PERFORM {schema}.forget_instances(v_all);
    END IF;
    PERFORM {schema}.notify(p_notify, p_me);
    RETURN NEXT;
END
$function$
