-- Returns since when the instance and the work that have waited longest could have been leased, NULL if
-- nothing waits (S18). Moves due rows first, as a fetch does, so that the indexes contain everything
-- runnable; then one index lookup each is enough (S20). An instance whose start is delayed does not count.
-- Locks: those of sweep_turns and sweep_work.
CREATE OR REPLACE FUNCTION {schema}.oldest_waiting(p_now_ms BIGINT DEFAULT NULL)
RETURNS TABLE (message_ms BIGINT, work_ms BIGINT, now_ms BIGINT)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := {schema}.now_ms(p_now_ms);
    v_floors {schema}.floors := {schema}.read_floors(v_now);
BEGIN
    PERFORM {schema}.sweep_turns(v_now, v_floors.due_messages, v_floors.leased_turns);
    PERFORM {schema}.sweep_work(v_now, v_floors.due_work, v_floors.leased_work);
    RETURN QUERY SELECT
        (
            SELECT l.since FROM {schema}.instance_locks AS l
            WHERE l.lock_token IS NULL AND l.head IS NOT NULL
              AND (
                  (
                      SELECT 1 FROM {schema}.orchestrator_queue AS q
                      WHERE q.instance_id = l.instance_id AND q.starts AND q.state = 0 LIMIT 1
                  ) IS NULL
                  OR {schema}.firm_turns(ARRAY[l.instance_id]) <> '{}'
              )
            ORDER BY l.since LIMIT 1
        ),
        least(
            (
                SELECT w.since FROM {schema}.worker_queue AS w
                WHERE w.state = 1 AND w.session_id IS NULL
                ORDER BY w.since LIMIT 1
            ),
            (SELECT h.since FROM {schema}.heads AS h ORDER BY h.since LIMIT 1)
        ),
        v_now;
END
$function$
