-- Doubles a number, and says more.
CREATE OR REPLACE FUNCTION {schema}.doubled(p_number BIGINT, p_more BIGINT DEFAULT 0)
RETURNS TABLE (doubled BIGINT, tripled BIGINT)
LANGUAGE plpgsql AS $function$
BEGIN
    RETURN QUERY SELECT p_number * 2 + p_more, p_number * 3;
END
$function$
