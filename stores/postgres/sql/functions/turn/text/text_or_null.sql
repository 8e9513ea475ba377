-- Returns a stored text, or NULL if the database cannot read it: a page of it is damaged, or a part of it is
-- missing (S15), or the time of the statement is up, which a text has used up. Each call is a subtransaction,
-- so only fetches use it that have met such a text.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.text_or_null(p_text TEXT) RETURNS TEXT
LANGUAGE plpgsql
AS $function$
DECLARE
    v_text TEXT;
BEGIN
    IF {schema}.is_statement_over() THEN
        RETURN NULL;
    END IF;
    -- Appending reads the whole text, and what is returned is not read again.
    v_text := p_text || '';
    RETURN v_text;
EXCEPTION WHEN data_corrupted OR index_corrupted OR data_exception THEN
    RETURN NULL;
WHEN query_canceled THEN
    IF NOT {schema}.is_statement_over() THEN
        RAISE;
    END IF;
    RETURN NULL;
END
$function$
