-- Makes a function that has not the name of its file.
CREATE OR REPLACE FUNCTION {schema}.tripled(p_number BIGINT)
RETURNS BIGINT LANGUAGE sql AS $function$ SELECT p_number * 3 $function$
