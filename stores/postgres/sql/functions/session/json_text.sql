-- Writes a stored text as a JSON string. In stored text U+0001 followed by `0` stands for U+0000, and
-- followed by `1` for U+0001; the JSON contains the original characters.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.json_text(p_text TEXT) RETURNS TEXT
LANGUAGE plpgsql IMMUTABLE STRICT
AS $function$
DECLARE
    v_written TEXT := '"';
    v_part TEXT;
    v_is_first BOOLEAN := true;
BEGIN
    IF strpos(p_text, chr(1)) = 0 THEN
        RETURN to_json(p_text)::text;
    END IF;
    FOREACH v_part IN ARRAY string_to_array(p_text, chr(1)) LOOP
        IF NOT v_is_first THEN
            v_written := v_written || CASE left(v_part, 1) WHEN '0' THEN '\u0000' ELSE '\u0001' END;
            v_part := substr(v_part, 2);
        END IF;
        v_written := v_written || substr(left(to_json(v_part)::text, -1), 2);
        v_is_first := false;
    END LOOP;
    RETURN v_written || '"';
END
$function$
