-- Checks the event ids of each commit (S8); `p_codes` holds the verdicts on their leases (S4). If several
-- commits of one instance would pass, only the first does; the others become `lost`. Returns, for each
-- commit: its code (such as `ok`, `invalid`, `conflict` or `lost`), the instance if it passes (else NULL),
-- and the position within the commit of the event that it is refused for (else NULL).
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.judge_commits(
    p_codes TEXT[], p_holders TEXT[], p_executions BIGINT[], p_event_of INTEGER[], p_event_ids BIGINT[],
    OUT codes TEXT[], OUT passed TEXT[], OUT event_at INTEGER[]
)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    SELECT array_agg(CASE WHEN c.code = 'ok' AND b.bad IS NOT NULL THEN b.bad ELSE c.code END
        ORDER BY c.place),
        array_agg(CASE WHEN c.code = 'ok' THEN b.at END ORDER BY c.place),
        array_agg(CASE WHEN c.code = 'ok' AND b.bad IS NULL THEN c.instance_id END ORDER BY c.place)
    INTO codes, event_at, passed
    FROM unnest(p_codes, p_holders) WITH ORDINALITY AS c (code, instance_id, place)
    LEFT JOIN (
        SELECT DISTINCT ON (e.of) e.of, e.at, CASE WHEN e.id <= 0 THEN 'invalid' ELSE 'conflict' END AS bad
        FROM (
            SELECT e.of, e.id, row_number() OVER (PARTITION BY e.of ORDER BY e.place)::int AS at,
                row_number() OVER (PARTITION BY e.of, e.id ORDER BY e.place) AS nth
            FROM unnest(p_event_of, p_event_ids) WITH ORDINALITY AS e (of, id, place)
        ) AS e
        WHERE e.id <= 0 OR e.nth > 1 OR (
            SELECT 1 FROM {schema}.history AS h
            WHERE h.instance_id = p_holders[e.of] AND h.execution_id = p_executions[e.of]
                AND h.event_id = e.id
        ) = 1
        ORDER BY e.of, e.at
    ) AS b ON b.of = c.place;

    IF (SELECT count(*) > count(DISTINCT id) FROM unnest(passed) AS p (id) WHERE id IS NOT NULL) THEN
        SELECT array_agg(CASE WHEN c.nth > 1 THEN 'lost' ELSE c.code END ORDER BY c.place),
            array_agg(CASE WHEN c.nth = 1 THEN c.passed END ORDER BY c.place)
        INTO codes, passed
        FROM (
            SELECT c.*, CASE WHEN c.passed IS NOT NULL
                THEN row_number() OVER (PARTITION BY c.passed ORDER BY c.place) END AS nth
            FROM unnest(codes, passed) WITH ORDINALITY AS c (code, passed, place)
        ) AS c;
    END IF;
END
$function$
