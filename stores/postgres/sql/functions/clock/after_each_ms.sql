-- Adds each delay of an array to a time, as after_ms does, and keeps the order.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.after_each_ms(p_now BIGINT, p_delays BIGINT[]) RETURNS BIGINT[]
LANGUAGE plpgsql IMMUTABLE AS $function$
BEGIN
    RETURN ARRAY(
        SELECT {schema}.after_ms(p_now, d.delay) FROM unnest(p_delays) WITH ORDINALITY AS d (delay, place)
            ORDER BY d.place
    );
END
$function$
