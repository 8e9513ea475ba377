-- Notes commits in the rows of instances and executions; the first commit of an execution makes its row, the first that says
-- whose an instance is makes the row of that. Returns, by commit, the run and the pin of the instance from now on.
-- Each join also names the instances themselves: then no plan reads more than those, whatever the planner believes.
-- Locks: none; the caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.record_commits(
    p_instances TEXT[], p_executions BIGINT[], p_names TEXT[], p_versions TEXT[], p_parents TEXT[],
    p_statuses TEXT[], p_outputs TEXT[], p_failures TEXT[], p_majors INTEGER[], p_minors INTEGER[], p_patches INTEGER[],
    p_shows BOOLEAN[], p_custom_statuses TEXT[], p_at TIMESTAMPTZ,
    OUT runs BIGINT[], OUT pins BIGINT[]
)
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_fresh BOOLEAN[];     -- executions without a row
    v_statuses TEXT[];     -- of the executions, from now on
    v_currents BIGINT[];   -- the current executions, from now on
    v_unnamed BOOLEAN[];   -- instances that get their row
BEGIN
    SELECT array_agg(coalesce(e.run_id, nextval('{schema}.numbers')) ORDER BY c.place),
        array_agg(e.run_id IS NULL ORDER BY c.place),
        array_agg(coalesce(c.status, e.status, 'Running') ORDER BY c.place),
        array_agg(i.current_execution_id IS NULL AND c.name IS NOT NULL AND c.version IS NOT NULL ORDER BY c.place),
        array_agg(CASE
            WHEN i.current_execution_id IS NOT NULL THEN greatest(i.current_execution_id, c.execution_id)
            WHEN c.name IS NOT NULL AND c.version IS NOT NULL THEN c.execution_id
            ELSE 1
        END ORDER BY c.place),
        array_agg({schema}.pin_of(coalesce(c.major, e.duroxide_version_major),
            CASE WHEN c.major IS NULL THEN e.duroxide_version_minor ELSE c.minor END,
            CASE WHEN c.major IS NULL THEN e.duroxide_version_patch ELSE c.patch END) ORDER BY c.place)
    INTO runs, v_fresh, v_statuses, v_unnamed, v_currents, pins
    FROM unnest(p_instances, p_executions, p_names, p_versions, p_statuses, p_majors, p_minors, p_patches)
        WITH ORDINALITY AS c (instance_id, execution_id, name, version, status, major, minor, patch, place)
    LEFT JOIN {schema}.executions AS e
        ON e.instance_id = c.instance_id AND e.execution_id = c.execution_id AND e.instance_id = ANY (p_instances)
    LEFT JOIN {schema}.instances AS i ON i.instance_id = c.instance_id AND i.instance_id = ANY (p_instances);

    IF true = ANY (v_fresh) THEN
        INSERT INTO {schema}.executions (instance_id, execution_id, run_id, status, output, failure, started_at, completed_at,
            duroxide_version_major, duroxide_version_minor, duroxide_version_patch)
        SELECT c.instance_id, c.execution_id, c.run_id, c.status, c.output, c.failure, p_at,
            CASE WHEN c.status <> 'Running' THEN p_at END, c.major, c.minor, c.patch
        FROM unnest(p_instances, p_executions, runs, v_statuses, p_outputs, p_failures, p_majors, p_minors, p_patches, v_fresh)
            AS c (instance_id, execution_id, run_id, status, output, failure, major, minor, patch, fresh)
        WHERE c.fresh AND c.instance_id IS NOT NULL;
    END IF;

    IF cardinality(array_remove(p_majors, NULL)) > 0 THEN
        INSERT INTO {schema}.pins (pin)
        SELECT DISTINCT c.pin FROM unnest(p_instances, p_majors, pins) AS c (instance_id, major, pin)
        WHERE c.instance_id IS NOT NULL AND c.major IS NOT NULL
          AND (SELECT 1 FROM {schema}.pins AS p WHERE p.pin = c.pin) IS NULL
        ORDER BY c.pin
        ON CONFLICT DO NOTHING;
    END IF;

    IF EXISTS (
        SELECT 1 FROM unnest(p_instances, v_fresh, p_statuses, p_majors) AS c (instance_id, fresh, status, major)
        WHERE NOT c.fresh AND c.instance_id IS NOT NULL AND (c.status IS NOT NULL OR c.major IS NOT NULL)
    ) THEN
        UPDATE {schema}.executions AS e
        SET status = coalesce(c.status, e.status),
            output = CASE WHEN c.status IS NULL THEN e.output ELSE c.output END,
            failure = CASE WHEN c.status IS NULL THEN e.failure ELSE c.failure END,
            completed_at = CASE WHEN coalesce(c.status, 'Running') = 'Running' THEN e.completed_at ELSE p_at END,
            duroxide_version_major = CASE WHEN c.major IS NULL THEN e.duroxide_version_major ELSE c.major END,
            duroxide_version_minor = CASE WHEN c.major IS NULL THEN e.duroxide_version_minor ELSE c.minor END,
            duroxide_version_patch = CASE WHEN c.major IS NULL THEN e.duroxide_version_patch ELSE c.patch END
        FROM unnest(p_instances, p_executions, p_statuses, p_outputs, p_failures, p_majors, p_minors, p_patches, v_fresh)
            AS c (instance_id, execution_id, status, output, failure, major, minor, patch, fresh)
        WHERE e.instance_id = c.instance_id AND e.execution_id = c.execution_id AND e.instance_id = ANY (p_instances)
          AND NOT c.fresh AND (c.status IS NOT NULL OR c.major IS NOT NULL);
    END IF;

    UPDATE {schema}.instances AS i
    SET orchestration_name = CASE WHEN c.version IS NULL THEN i.orchestration_name ELSE coalesce(c.name, i.orchestration_name) END,
        orchestration_version = CASE WHEN c.name IS NULL THEN i.orchestration_version ELSE coalesce(c.version, i.orchestration_version) END,
        current_execution_id = c.current,
        status = CASE WHEN c.execution_id = c.current THEN c.status ELSE i.status END,
        custom_status = CASE WHEN c.shows THEN c.custom_status ELSE i.custom_status END,
        custom_status_version = i.custom_status_version + c.shows::int,
        updated_at = p_at,
        change = nextval('{schema}.numbers')
    FROM unnest(p_instances, p_executions, p_names, p_versions, v_statuses, v_currents, p_shows, p_custom_statuses)
        AS c (instance_id, execution_id, name, version, status, current, shows, custom_status)
    WHERE i.instance_id = c.instance_id AND i.instance_id = ANY (p_instances);

    IF true = ANY (v_unnamed) THEN
        INSERT INTO {schema}.instances (instance_id, orchestration_name, orchestration_version, current_execution_id,
            parent_instance_id, status, custom_status, custom_status_version, created_at, updated_at, ord, change)
        SELECT c.instance_id, c.name, c.version, c.execution_id, c.parent, c.status,
            CASE WHEN c.shows THEN c.custom_status END, c.shows::int, p_at, p_at,
            nextval('{schema}.numbers'), nextval('{schema}.numbers')
        FROM unnest(p_instances, p_executions, p_names, p_versions, p_parents, v_statuses, p_shows, p_custom_statuses, v_unnamed)
            AS c (instance_id, execution_id, name, version, parent, status, shows, custom_status, unnamed)
        WHERE c.unnamed AND c.instance_id IS NOT NULL;
    END IF;

    -- A commit to another execution than the current one pins nothing.
    IF v_currents <> p_executions THEN
        SELECT array_agg(CASE
            WHEN c.execution_id = c.current THEN c.pin
            ELSE coalesce((
                SELECT {schema}.pin_of(e.duroxide_version_major, e.duroxide_version_minor, e.duroxide_version_patch)
                FROM {schema}.executions AS e
                WHERE e.instance_id = c.instance_id AND e.execution_id = c.current
            ), -1)
        END ORDER BY c.place)
        INTO pins
        FROM unnest(p_instances, p_executions, v_currents, pins)
            WITH ORDINALITY AS c (instance_id, execution_id, current, pin, place);
    END IF;
END
$function$
