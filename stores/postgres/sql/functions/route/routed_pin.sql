-- Returns the pin for an engine version (p_version, a pin without a route) and a handler, and makes it if
-- there is none. The row stays locked against deletion until the transaction ends, so that the pin can be
-- given to an instance.
-- Locks: the row of `pins`, shared.
CREATE OR REPLACE FUNCTION {schema}.routed_pin(
    p_version BIGINT, p_handler TEXT, p_handler_version TEXT, p_route TEXT
) RETURNS BIGINT
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_pin BIGINT;
BEGIN
    FOR v_try IN 1..100 LOOP
        SELECT p.pin INTO v_pin FROM {schema}.pins AS p
        WHERE p.version = p_version AND p.route = p_route AND p.pin < -1
        FOR KEY SHARE;
        IF FOUND THEN
            RETURN v_pin;
        END IF;
        INSERT INTO {schema}.pins (pin, version, handler, handler_version, route)
        VALUES (-1 - nextval('{schema}.numbers'), p_version, p_handler, p_handler_version, p_route)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RAISE EXCEPTION 'routes are removed as fast as they are made' USING ERRCODE = 'serialization_failure';
END
$function$
