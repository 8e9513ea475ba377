-- Makes a routed tag known, unless it is. The row stays locked against deletion until the transaction ends,
-- so that the tag can be given to work.
-- Locks: the row of `routes`, shared.
CREATE OR REPLACE FUNCTION {schema}.make_route(p_handler TEXT, p_plain TEXT, p_name TEXT) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    FOR v_try IN 1..100 LOOP
        PERFORM 1 FROM {schema}.routes AS r WHERE r.tag = '@' || p_handler || p_plain FOR KEY SHARE;
        IF FOUND THEN
            RETURN;
        END IF;
        INSERT INTO {schema}.routes (tag, handler, plain, name)
        VALUES ('@' || p_handler || p_plain, p_handler, p_plain, p_name)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RAISE EXCEPTION 'routes are removed as fast as they are made' USING ERRCODE = 'serialization_failure';
END
$function$
