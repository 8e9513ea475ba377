-- Parses a work item or an event as JSONB; NULL if it is not valid. JSONB refuses U+0000, so strings are
-- escaped as the store escapes plain text: U+0000 becomes U+0001 followed by `0`, and U+0001 becomes U+0001
-- followed by `1`.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.item_of(p_text TEXT) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $function$
BEGIN
    -- A backslash begins an escape only after an even number of backslashes.
    RETURN regexp_replace(
        regexp_replace(p_text, '(?<!\\)((\\\\)*)\\u0001', '\1\\u00011', 'g'),
        '(?<!\\)((\\\\)*)\\u0000', '\1\\u00010', 'g'
    )::JSONB;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END
$function$
