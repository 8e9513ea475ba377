-- Doubles a number, and adds something for those who know of it.
CREATE OR REPLACE FUNCTION {schema}.doubled(p_number BIGINT, p_more BIGINT DEFAULT 0)
RETURNS TABLE (doubled BIGINT)
LANGUAGE plpgsql AS $function$
BEGIN
    RETURN QUERY SELECT p_number * 2 + p_more;
END
$function$
