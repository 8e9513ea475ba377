-- Returns the item of a row, or NULL if the database cannot read it or the text that belongs to it (S15): the
-- terms of work, or the failure of a message; NULL if there is none. See text_or_null.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.whole_or_null(p_item TEXT, p_beside TEXT) RETURNS TEXT
LANGUAGE plpgsql
AS $function$
BEGIN
    IF p_beside IS NOT NULL AND {schema}.text_or_null(p_beside) IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN {schema}.text_or_null(p_item);
END
$function$
