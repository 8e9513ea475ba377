-- Makes a routed tag known, unless it is, and returns it. The row stays locked against deletion until the
-- transaction ends, so that the tag can be given to work.
-- Locks: the row of `routes`, shared.
CREATE OR REPLACE FUNCTION {schema}.make_route(
    p_handler TEXT, p_plain TEXT, p_on_session BOOLEAN, p_name TEXT
) RETURNS TEXT
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_tag CONSTANT TEXT := CASE WHEN p_on_session THEN 'A' ELSE '@' END || p_handler || p_plain;
BEGIN
    FOR v_try IN 1..100 LOOP
        PERFORM 1 FROM {schema}.routes AS r WHERE r.tag = v_tag FOR KEY SHARE;
        IF FOUND THEN
            RETURN v_tag;
        END IF;
        INSERT INTO {schema}.routes (tag, handler, plain, on_session, name)
        VALUES (v_tag, p_handler, p_plain, p_on_session, p_name)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RAISE EXCEPTION 'routes are removed as fast as they are made' USING ERRCODE = 'serialization_failure';
END
$function$
