-- Packs an engine version into one number, the pin by which ready instances are found: 20 bits per part,
-- where larger parts count as the largest. -1 if there is no version.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.pin_of(p_major INTEGER, p_minor INTEGER, p_patch INTEGER) RETURNS BIGINT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT CASE WHEN p_major IS NULL THEN -1
        ELSE (least(p_major, 1048575)::bigint << 40)
            | (least(coalesce(p_minor, 0), 1048575)::bigint << 20)
            | least(coalesce(p_patch, 0), 1048575)::bigint
    END
$function$
