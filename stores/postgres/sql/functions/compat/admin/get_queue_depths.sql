-- Compatible function: counts the messages and the work that are not leased, including those that are not
-- visible yet, such as future timers. p_now_ms NULL: the time of the database. Columns:
-- out_orchestrator_queue, out_worker_queue.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.get_queue_depths(p_now_ms BIGINT DEFAULT NULL)
RETURNS TABLE(out_orchestrator_queue BIGINT, out_worker_queue BIGINT)
LANGUAGE plpgsql STABLE AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
BEGIN
    RETURN QUERY SELECT
        (SELECT count(*) FROM {schema}.orchestrator_queue)
        - (SELECT coalesce(sum(cardinality(lock.leased)), 0)::bigint FROM {schema}.instance_locks AS lock
           WHERE lock.lock_token IS NOT NULL AND lock.locked_until > v_now),
        (SELECT count(*) FROM {schema}.worker_queue)
        - (SELECT count(*) FROM {schema}.worker_queue AS work WHERE work.state = 2
            AND work.locked_until > v_now);
END
$function$
