-- Registers a start of a node and returns its incarnation, a number that rises with each start (S13). Calls
-- of the node with an older incarnation change nothing from then on.
-- Locks: the row of the node in `nodes`.
CREATE OR REPLACE FUNCTION {schema}.register_node(p_node TEXT) RETURNS BIGINT
LANGUAGE plpgsql
SET enable_seqscan TO off
SET enable_bitmapscan TO off
SET enable_hashjoin TO off
SET enable_mergejoin TO off
SET jit TO off
SET plan_cache_mode TO force_generic_plan
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
