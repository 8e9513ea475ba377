-- Refuses leased work, because the caller lacks its handler (S4, S21). If a live worker lists the handler,
-- the lease is abandoned uncounted and without a delay, else as p_delay_ms and p_uncounted say, and the delay
-- ends when a worker lists the handler. From then on the work has a route: its tag becomes a routed one.
-- p_handler is the key of the handler, p_name its name.
-- Returns `ok`, `ended` (the lease has expired), `withdrawn` or `lost` (the token is unknown), and whether
-- the handler is listed.
-- Locks: the row of its session in `lines`, its row in `worker_queue`, then the
-- advisory lock of the workers and `routes`, shared.
CREATE OR REPLACE FUNCTION {schema}.refuse_work(
    p_token TEXT, p_handler TEXT, p_name TEXT, p_delay_ms BIGINT, p_uncounted BOOLEAN,
    p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL
) RETURNS TABLE (code TEXT, listed BOOLEAN)
LANGUAGE plpgsql
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT;
    v_work {schema}.worker_queue;
    v_plain TEXT;
    v_tag TEXT;
BEGIN
    SELECT w.* INTO v_work FROM {schema}.worker_queue AS w WHERE w.lock_token = p_token;
    IF v_work.session_id IS NOT NULL THEN
        PERFORM {schema}.lock_lines(ARRAY[v_work.session_scope], ARRAY[v_work.session_id]);
    END IF;
    SELECT w.* INTO v_work FROM {schema}.worker_queue AS w WHERE w.lock_token = p_token FOR UPDATE;
    v_now := {schema}.now_ms(p_now_ms);
    listed := false;
    IF v_work.id IS NULL THEN
        code := {schema}.code_of_lost_work(p_token);
        RETURN NEXT;
        RETURN;
    END IF;
    code := {schema}.code_of_lease(v_work.locked_until, v_now);
    IF code <> 'ok' THEN
        RETURN NEXT;
        RETURN;
    END IF;
    v_plain := {schema}.plain_tag(v_work.tag);
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('{schema}.workers', 0));
    listed := {schema}.is_listed(1::smallint, p_handler, NULL, v_plain, v_now,
        v_work.session_id IS NOT NULL, NULL);
    v_tag := {schema}.make_route(p_handler, v_plain, v_work.session_id IS NOT NULL, p_name);
    UPDATE {schema}.worker_queue AS w
    SET tag = v_tag, refused = NOT listed AND p_delay_ms IS NOT NULL
    WHERE w.id = v_work.id;
    PERFORM {schema}.give_work_back(
        ARRAY[p_token], ARRAY[CASE WHEN NOT listed THEN p_delay_ms END], ARRAY[listed OR p_uncounted], true,
        v_now
    );
    PERFORM {schema}.notify(p_notify, p_me);
    RETURN NEXT;
END
$function$
