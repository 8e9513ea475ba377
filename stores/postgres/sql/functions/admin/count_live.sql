-- Counts what is live: instances whose current execution runs, messages and work. Reads indexes of those rows
-- only, no history and nothing that has ended (S20).
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.count_live()
RETURNS TABLE(running BIGINT, messages BIGINT, work BIGINT)
LANGUAGE plpgsql STABLE
{planner}
AS $function$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT
        (SELECT count(*) FROM {schema}.instances AS i WHERE i.status = 'Running'),
        (SELECT count(*) FROM {schema}.orchestrator_queue AS q WHERE q.state = 1)
            + (SELECT count(*) FROM {schema}.orchestrator_queue AS q WHERE q.state = 0),
        (SELECT count(*) FROM {schema}.worker_queue AS w);
END
$function$
