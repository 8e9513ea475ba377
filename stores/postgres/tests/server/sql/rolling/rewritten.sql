-- Doubles a number in another way.
CREATE OR REPLACE FUNCTION {schema}.doubled(p_number BIGINT)
RETURNS TABLE (doubled BIGINT)
LANGUAGE plpgsql AS $function$
BEGIN
    RETURN QUERY SELECT p_number + p_number;
END
$function$
