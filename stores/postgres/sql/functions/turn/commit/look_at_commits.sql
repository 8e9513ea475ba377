-- Reads what commits need to know: the state of their leases (`ok`, `ended`, `lost`; S4), the instances that
-- the tokens belong to, and the values that their rows will get. Returns arrays by commit, and two single
-- values: `plain`, the number of live leases whose new events all have higher ids than the stored ones, and
-- `changed`, whether an existing execution gets a new status or pin.
-- No aggregate here may have an ORDER BY or DISTINCT of its own: from version 16 on the server sorts the
-- input for it, and then all other arrays come in that order too.
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.look_at_commits(
    p_tokens TEXT[], p_executions BIGINT[], p_names TEXT[], p_versions TEXT[], p_statuses TEXT[],
    p_majors INTEGER[], p_minors INTEGER[], p_patches INTEGER[], p_rising BIGINT[], p_now BIGINT,
    OUT codes TEXT[], OUT holders TEXT[], OUT plain INTEGER, OUT runs BIGINT[], OUT fresh BOOLEAN[],
    OUT statuses TEXT[],
    OUT unnamed BOOLEAN[], OUT currents BIGINT[], OUT pins BIGINT[], OUT named TID[], OUT changed BOOLEAN
)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    SELECT array_agg(c.code), array_agg(c.holder), count(*) FILTER (WHERE c.code = 'ok' AND c.rises),
        array_agg(coalesce(c.run_id, nextval('{schema}.numbers'))), array_agg(c.run_id IS NULL),
        array_agg(c.status_then), array_agg(c.current_execution_id IS NULL AND c.name IS NOT NULL
            AND c.version IS NOT NULL),
        array_agg(CASE
            WHEN c.current_execution_id IS NOT NULL THEN greatest(c.current_execution_id, c.execution_id)
            WHEN c.name IS NOT NULL AND c.version IS NOT NULL THEN c.execution_id
            ELSE 1
        END),
        array_agg(c.pin), array_agg(c.row),
        bool_or(c.run_id IS NOT NULL AND (c.status IS NOT NULL OR c.major IS NOT NULL))
    INTO codes, holders, plain, runs, fresh, statuses, unnamed, currents, pins, named, changed
    FROM (
        SELECT c.execution_id, c.name, c.version, c.status, c.major, l.instance_id AS holder,
            {schema}.code_of_lease(l.locked_until, p_now) AS code,
            coalesce(c.rising > coalesce((
                SELECT h.event_id FROM {schema}.history AS h
                WHERE h.instance_id = l.instance_id AND h.execution_id = c.execution_id
                ORDER BY h.event_id DESC LIMIT 1
            ), 0), false) AS rises,
            e.run_id, coalesce(c.status, e.status, 'Running') AS status_then,
            {schema}.pin_of(coalesce(c.major, e.major),
                CASE WHEN c.major IS NULL THEN e.minor ELSE c.minor END,
                CASE WHEN c.major IS NULL THEN e.patch ELSE c.patch END) AS pin,
            i.row, i.current_execution_id
        FROM unnest(p_tokens, p_executions, p_names, p_versions, p_statuses, p_majors, p_minors, p_patches,
            p_rising)
            WITH ORDINALITY AS c (token, execution_id, name, version, status, major, minor, patch, rising,
                place)
        LEFT JOIN LATERAL (
            SELECT l.instance_id, l.locked_until FROM {schema}.instance_locks AS l
                WHERE l.lock_token = c.token OFFSET 0
        ) AS l ON true
        LEFT JOIN LATERAL (
            SELECT e.run_id, e.status, e.duroxide_version_major AS major, e.duroxide_version_minor AS minor,
                e.duroxide_version_patch AS patch
            FROM {schema}.executions AS e WHERE e.instance_id = l.instance_id
                AND e.execution_id = c.execution_id OFFSET 0
        ) AS e ON true
        LEFT JOIN LATERAL (
            SELECT i.ctid AS row, i.current_execution_id FROM {schema}.instances AS i
                WHERE i.instance_id = l.instance_id OFFSET 0
        ) AS i ON true
        ORDER BY c.place
    ) AS c;
END
$function$
