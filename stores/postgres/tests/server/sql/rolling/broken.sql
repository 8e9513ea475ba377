-- Cannot be made.
CREATE OR REPLACE FUNCTION {schema}.doubled(p_number BIGINT)
RETURNS TABLE (doubled BIGINT)
LANGUAGE plpgsql AS $function$
BEGIN
    RETURN QUERY SELECT FROM WHERE;
END
$function$
