-- Registers a start of a node and returns its incarnation, a number that rises with each start (S13). Calls
-- of the node with an older incarnation change nothing from then on.
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
    ON CONFLICT (node_id) DO UPDATE SET incarnation = nextval('{schema}.numbers')
    RETURNING incarnation INTO v_incarnation;
    RETURN v_incarnation;
END
$function$
