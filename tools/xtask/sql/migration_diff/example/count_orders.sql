-- An example for the tests of the document: a function.
CREATE OR REPLACE FUNCTION {schema}.count_orders(p_name TEXT DEFAULT NULL) RETURNS BIGINT
LANGUAGE sql AS $function$
    SELECT count(*) FROM {schema}.orders WHERE p_name IS NULL OR name = p_name
$function$
