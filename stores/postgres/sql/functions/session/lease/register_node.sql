-- Registers a start of a node that has no id, and returns its incarnation (S13): for processes of version 0.2
-- and for SQL callers. It replaces whatever is the newest; see register_start.
-- Locks: the row of the node in `nodes`.
CREATE OR REPLACE FUNCTION {schema}.register_node(p_node TEXT) RETURNS BIGINT
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_incarnation BIGINT;
BEGIN
    -- The number is drawn under the lock of the row, so that a later start has a higher number.
    INSERT INTO {schema}.nodes (node_id, incarnation) VALUES (p_node, nextval('{schema}.numbers'))
    ON CONFLICT (node_id) DO UPDATE
    SET incarnation = nextval('{schema}.numbers'), start_id = '', started_ms = 0
    RETURNING incarnation INTO v_incarnation;
    RETURN v_incarnation;
END
$function$
