-- Returns the routed pins whose instances a worker is not given (S21), NULL if there are none: one index
-- lookup if nothing is routed, a few for each route otherwise.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.shut_pins(p_worker TEXT, p_now BIGINT) RETURNS BIGINT[]
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
BEGIN
    RETURN (
        SELECT array_agg(p.pin) FROM {schema}.pins AS p
        WHERE p.pin < -1
          AND NOT {schema}.takes_route(p_worker, 0::smallint, p.handler, p.handler_version, NULL, p_now,
              false, p.version)
    );
END
$function$
