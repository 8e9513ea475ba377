-- Tells whether the time of the statement is up, so that a query_canceled means statement_timeout and not a
-- person. A function that catches it goes on without a limit of time. The limit counts from the first message
-- of a statement, its timestamp from the last one: a tenth is more than what lies between.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.is_statement_over() RETURNS BOOLEAN
LANGUAGE sql VOLATILE AS $function$
    SELECT t.lasts > '0' AND clock_timestamp() >= statement_timestamp() + t.lasts * 0.9
    FROM (SELECT current_setting('statement_timeout')::interval AS lasts) AS t
$function$
