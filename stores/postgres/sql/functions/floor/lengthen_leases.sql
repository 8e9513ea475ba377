-- Records the length of the longest lease. A lease that is longer than all before it waits for the row of the
-- floors; any other only reads it.
-- Locks: the row of `floors`, only for a longer lease.
CREATE OR REPLACE FUNCTION {schema}.lengthen_leases(p_ms BIGINT) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    IF (SELECT f.longest_ms FROM {schema}.floors AS f) < p_ms THEN
        UPDATE {schema}.floors AS f SET longest_ms = p_ms WHERE f.longest_ms < p_ms;
    END IF;
END
$function$
