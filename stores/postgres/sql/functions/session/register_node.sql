-- Gives a node the number of its newest start (S13): calls with an older number change nothing from then on.
-- Locks: the row of the node.
CREATE OR REPLACE FUNCTION {schema}.register_node(p_node TEXT) RETURNS BIGINT
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_incarnation BIGINT;
BEGIN
    -- The number is drawn under the lock of the row, so that the newest start has the highest.
    INSERT INTO {schema}.nodes (node_id, incarnation) VALUES (p_node, nextval('{schema}.numbers'))
    ON CONFLICT (node_id) DO UPDATE SET incarnation = nextval('{schema}.numbers')
    RETURNING incarnation INTO v_incarnation;
    RETURN v_incarnation;
END
$function$
