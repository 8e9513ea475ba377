-- Judges commits, each alone, as `commit_turns` answers them: by their leases (S4), then by the ids of their events (S8). Of
-- two commits with one token the first that can be done passes. Arrays by commit: codes, instances, the instances of those
-- that pass (NULL for the others), the events that they are refused for.
-- Locks: none; the caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.judge_commits(
    p_tokens TEXT[], p_executions BIGINT[], p_event_of INTEGER[], p_event_ids BIGINT[], p_now BIGINT,
    OUT codes TEXT[], OUT instances TEXT[], OUT passed TEXT[], OUT event_at INTEGER[], OUT refused BOOLEAN, OUT any_passed BOOLEAN
)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_holders TEXT[];
BEGIN
    SELECT array_agg({schema}.code_of_lease(l.locked_until, p_now) ORDER BY t.place),
        array_agg(l.instance_id ORDER BY t.place),
        array_agg(CASE WHEN l.locked_until > p_now THEN l.instance_id END ORDER BY t.place)
    INTO codes, v_holders, passed
    FROM unnest(p_tokens) WITH ORDINALITY AS t (token, place)
    LEFT JOIN {schema}.instance_locks AS l ON l.lock_token = t.token AND l.lock_token = ANY (p_tokens);
    instances := v_holders;

    -- Ids that rise from behind the last that is stored are new. Whatever else there is, is looked at one by one.
    IF EXISTS (
        SELECT 1 FROM (
            SELECT e.of, e.id, lag(e.of) OVER () AS of_last, lag(e.id) OVER () AS last
            FROM unnest(p_event_of, p_event_ids) AS e (of, id)
        ) AS e
        WHERE CASE WHEN e.of_last = e.of THEN e.id <= e.last
            ELSE e.id <= coalesce((
                SELECT h.event_id FROM {schema}.history AS h
                WHERE h.instance_id = v_holders[e.of] AND h.execution_id = p_executions[e.of]
                ORDER BY h.event_id DESC LIMIT 1
            ), 0)
        END
    ) THEN
        SELECT array_agg(CASE WHEN c.code = 'ok' AND b.bad IS NOT NULL THEN b.bad ELSE c.code END ORDER BY c.place),
            array_agg(CASE WHEN c.code = 'ok' THEN b.at END ORDER BY c.place),
            array_agg(CASE WHEN c.code = 'ok' AND b.bad IS NULL THEN c.instance_id END ORDER BY c.place)
        INTO codes, event_at, passed
        FROM unnest(codes, v_holders) WITH ORDINALITY AS c (code, instance_id, place)
        LEFT JOIN (
            SELECT DISTINCT ON (e.of) e.of, e.at, CASE WHEN e.id <= 0 THEN 'invalid' ELSE 'conflict' END AS bad
            FROM (
                SELECT e.of, e.id, row_number() OVER (PARTITION BY e.of ORDER BY e.place)::int AS at,
                    row_number() OVER (PARTITION BY e.of, e.id ORDER BY e.place) AS nth
                FROM unnest(p_event_of, p_event_ids) WITH ORDINALITY AS e (of, id, place)
            ) AS e
            WHERE e.id <= 0 OR e.nth > 1 OR (
                SELECT 1 FROM {schema}.history AS h
                WHERE h.instance_id = v_holders[e.of] AND h.execution_id = p_executions[e.of] AND h.event_id = e.id
            ) = 1
            ORDER BY e.of, e.at
        ) AS b ON b.of = c.place;
    END IF;

    IF cardinality(p_tokens) > 1 AND (SELECT count(*) > count(DISTINCT id) FROM unnest(passed) AS p (id) WHERE id IS NOT NULL) THEN
        SELECT array_agg(CASE WHEN c.nth > 1 THEN 'lost' ELSE c.code END ORDER BY c.place),
            array_agg(CASE WHEN c.nth = 1 THEN c.passed END ORDER BY c.place)
        INTO codes, passed
        FROM (
            SELECT c.*, CASE WHEN c.passed IS NOT NULL THEN row_number() OVER (PARTITION BY c.passed ORDER BY c.place) END AS nth
            FROM unnest(codes, passed) WITH ORDINALITY AS c (code, passed, place)
        ) AS c;
    END IF;
    any_passed := 'ok' = ANY (codes);
    refused := NOT ('ok' = ALL (codes));
END
$function$
