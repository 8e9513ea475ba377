-- Converts a pin, the stored form of an engine version (see pin_of), to major * 1000000 + minor * 1000 +
-- patch.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.packed_of(p_pin BIGINT) RETURNS BIGINT
LANGUAGE sql IMMUTABLE AS $function$
    SELECT (p_pin >> 40) * 1000000 + ((p_pin >> 20) & 1048575) * 1000 + (p_pin & 1048575)
$function$
