-- Gives instances with a route the pins of a commit, p_pins: an instance that goes on keeps its route beside
-- the new engine version, one whose execution has ended has none (S21).
-- Locks: `pins`, shared. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.keep_routes(p_instances TEXT[], p_pins BIGINT[]) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_routed RECORD;
BEGIN
    FOR v_routed IN
        SELECT c.instance_id, c.pin AS wanted, p.version, p.handler, p.handler_version, p.route,
            coalesce((SELECT i.status FROM {schema}.instances AS i WHERE i.instance_id = c.instance_id),
                'Running') AS status
        FROM unnest(p_instances, p_pins) AS c (instance_id, pin)
        CROSS JOIN LATERAL (
            SELECT l.pin FROM {schema}.instance_locks AS l WHERE l.instance_id = c.instance_id OFFSET 0
        ) AS l
        JOIN {schema}.pins AS p ON p.pin = l.pin
        ORDER BY p.route
    LOOP
        CONTINUE WHEN v_routed.status = 'Running' AND v_routed.version = v_routed.wanted;
        UPDATE {schema}.instance_locks AS l
        SET pin = CASE
            WHEN v_routed.status = 'Running' THEN {schema}.routed_pin(v_routed.wanted, v_routed.handler,
                v_routed.handler_version, v_routed.route)
            ELSE v_routed.wanted
        END
        WHERE l.instance_id = v_routed.instance_id;
    END LOOP;
END
$function$
