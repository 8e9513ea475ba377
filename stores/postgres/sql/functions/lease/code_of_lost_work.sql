-- Judges a token that no work has: `withdrawn` if its work was withdrawn while the lease lasted (S12), else
-- `lost`.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.code_of_lost_work(p_token TEXT) RETURNS TEXT
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
BEGIN
    RETURN CASE WHEN EXISTS (
        SELECT 1 FROM {schema}.ended_leases AS e WHERE e.token = p_token AND e.reason = 1
    ) THEN 'withdrawn' ELSE 'lost' END;
END
$function$
