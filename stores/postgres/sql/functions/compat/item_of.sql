-- Reads a work item or an event; NULL when it cannot be read. Its strings are as the store keeps plain ones: U+0000, which jsonb
-- refuses, as U+0001 `0`, and U+0001 as U+0001 `1`.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.item_of(p_text TEXT) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $function$
BEGIN
    -- An escape begins behind an even number of backslashes.
    RETURN regexp_replace(
        regexp_replace(p_text, '(?<!\\)((\\\\)*)\\u0001', '\1\\u00011', 'g'),
        '(?<!\\)((\\\\)*)\\u0000', '\1\\u00010', 'g'
    )::JSONB;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END
$function$
