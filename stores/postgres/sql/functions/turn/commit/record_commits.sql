-- Writes commits into `instances` and `executions`. The first commit of an execution inserts its row; the
-- first commit that names orchestration and version inserts the row of the instance. The arrays from p_runs
-- on come from look_at_commits. p_met_...: the starts of children that the commits have consumed; the row of
-- such a child keeps the life of its parent. A child whose parent is gone is marked as an orphan. Returns, by
-- commit, the pin of the instance from now on.
-- Locks: `instances` of the parents of new children in the order of instance_id, shared, so that a deletion
-- of the parent sees the child. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.record_commits(
    p_instances TEXT[], p_executions BIGINT[], p_names TEXT[], p_versions TEXT[], p_parents TEXT[],
    p_statuses TEXT[], p_outputs TEXT[], p_failures TEXT[], p_majors INTEGER[], p_minors INTEGER[],
    p_patches INTEGER[],
    p_shows BOOLEAN[], p_custom_statuses TEXT[],
    p_runs BIGINT[], p_fresh BOOLEAN[], p_thens TEXT[], p_unnamed BOOLEAN[], p_currents BIGINT[],
    p_pins BIGINT[],
    p_named TID[], p_changed BOOLEAN, p_at TIMESTAMPTZ, p_met_instances TEXT[] DEFAULT NULL,
    p_met_parents TEXT[] DEFAULT NULL, p_met_lives BIGINT[] DEFAULT NULL
) RETURNS BIGINT[]
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_now BIGINT := (extract(epoch FROM p_at) * 1000)::bigint;
    -- The parents of new children that exist.
    v_parents TEXT[];
BEGIN
    IF true = ANY (p_fresh) THEN
        INSERT INTO {schema}.executions (instance_id, execution_id, run_id, status, output, failure,
            started_at, completed_at,
            duroxide_version_major, duroxide_version_minor, duroxide_version_patch)
        SELECT c.instance_id, c.execution_id, c.run_id, c.status, c.output, c.failure, p_at,
            CASE WHEN c.status <> 'Running' THEN p_at END, c.major, c.minor, c.patch
        FROM unnest(p_instances, p_executions, p_runs, p_thens, p_outputs, p_failures, p_majors, p_minors,
            p_patches, p_fresh)
            AS c (instance_id, execution_id, run_id, status, output, failure, major, minor, patch, fresh)
        WHERE c.fresh AND c.instance_id IS NOT NULL;
    END IF;

    IF cardinality(array_remove(p_majors, NULL)) > 0 THEN
        INSERT INTO {schema}.pins (pin)
        SELECT DISTINCT c.pin FROM unnest(p_instances, p_majors, p_pins) AS c (instance_id, major, pin)
        WHERE c.instance_id IS NOT NULL AND c.major IS NOT NULL
          AND (SELECT 1 FROM {schema}.pins AS p WHERE p.pin = c.pin) IS NULL
        ORDER BY c.pin
        ON CONFLICT DO NOTHING;
    END IF;

    IF p_changed THEN
        UPDATE {schema}.executions AS e
        SET status = coalesce(c.status, e.status),
            output = CASE WHEN c.status IS NULL THEN e.output ELSE c.output END,
            failure = CASE WHEN c.status IS NULL THEN e.failure ELSE c.failure END,
            completed_at = CASE WHEN coalesce(c.status, 'Running') = 'Running' THEN e.completed_at
                ELSE p_at END,
            duroxide_version_major = CASE WHEN c.major IS NULL THEN e.duroxide_version_major ELSE c.major END,
            duroxide_version_minor = CASE WHEN c.major IS NULL THEN e.duroxide_version_minor ELSE c.minor END,
            duroxide_version_patch = CASE WHEN c.major IS NULL THEN e.duroxide_version_patch ELSE c.patch END
        FROM unnest(p_instances, p_executions, p_statuses, p_outputs, p_failures, p_majors, p_minors,
            p_patches, p_fresh)
            AS c (instance_id, execution_id, status, output, failure, major, minor, patch, fresh)
        -- The condition on p_instances is redundant; it keeps every plan from reading more than these
        -- instances.
        WHERE e.instance_id = c.instance_id AND e.execution_id = c.execution_id
            AND e.instance_id = ANY (p_instances)
          AND NOT c.fresh AND (c.status IS NOT NULL OR c.major IS NOT NULL);
    END IF;

    UPDATE {schema}.instances AS i
    SET orchestration_name = CASE WHEN c.version IS NULL THEN i.orchestration_name
        ELSE coalesce(c.name, i.orchestration_name) END,
        orchestration_version = CASE WHEN c.name IS NULL THEN i.orchestration_version
            ELSE coalesce(c.version, i.orchestration_version) END,
        current_execution_id = c.current,
        status = CASE WHEN c.execution_id = c.current THEN c.status ELSE i.status END,
        ended_ms = CASE
            WHEN c.execution_id <> c.current THEN i.ended_ms
            WHEN c.status = 'Running' THEN NULL
            WHEN i.status <> 'Running' AND i.current_execution_id = c.current AND c.given IS NULL
                THEN i.ended_ms
            ELSE v_now
        END,
        custom_status = CASE WHEN c.shows THEN c.custom_status ELSE i.custom_status END,
        custom_status_version = i.custom_status_version + c.shows::int,
        updated_at = p_at,
        change = nextval('{schema}.numbers')
    FROM unnest(p_instances, p_named, p_executions, p_names, p_versions, p_thens, p_currents, p_shows,
        p_custom_statuses, p_statuses) AS c (instance_id, row, execution_id, name, version, status, current,
        shows, custom_status, given)
    -- Not by c.row: the deletion of a parent may have written a new version of the row meanwhile.
    WHERE i.instance_id = c.instance_id AND i.instance_id = ANY (p_instances) AND c.row IS NOT NULL;

    IF true = ANY (p_unnamed) THEN
        IF cardinality(array_remove(p_parents, NULL)) > 0 THEN
            v_parents := ARRAY(
                SELECT i.instance_id FROM {schema}.instances AS i
                WHERE i.instance_id = ANY (p_parents)
                ORDER BY i.instance_id
                FOR KEY SHARE
            );
        END IF;
        INSERT INTO {schema}.instances (instance_id, orchestration_name, orchestration_version,
            current_execution_id,
            parent_instance_id, status, custom_status, custom_status_version, created_at, updated_at, ord,
            change, ended_ms, is_orphan, parent_life)
        SELECT c.instance_id, c.name, c.version, c.execution_id, c.parent, c.status,
            CASE WHEN c.shows THEN c.custom_status END, c.shows::int, p_at, p_at,
            nextval('{schema}.numbers'), nextval('{schema}.numbers'),
            CASE WHEN c.status <> 'Running' THEN v_now END,
            c.parent IS NOT NULL AND NOT (c.parent = ANY (v_parents)) IS TRUE, (
                SELECT met.life FROM unnest(p_met_instances, p_met_parents, p_met_lives)
                    AS met (instance_id, parent, life)
                WHERE met.instance_id = c.instance_id AND met.parent = c.parent LIMIT 1
            )
        FROM unnest(p_instances, p_executions, p_names, p_versions, p_parents, p_thens, p_shows,
            p_custom_statuses, p_unnamed)
            AS c (instance_id, execution_id, name, version, parent, status, shows, custom_status, unnamed)
        WHERE c.unnamed AND c.instance_id IS NOT NULL;
    END IF;

    -- A commit to an execution that is not the current one does not change the pin.
    IF p_currents <> p_executions THEN
        SELECT array_agg(CASE
            WHEN c.execution_id = c.current THEN c.pin
            ELSE coalesce((
                SELECT {schema}.pin_of(e.duroxide_version_major, e.duroxide_version_minor,
                    e.duroxide_version_patch)
                FROM {schema}.executions AS e
                WHERE e.instance_id = c.instance_id AND e.execution_id = c.current
            ), -1)
        END ORDER BY c.place)
        INTO p_pins
        FROM unnest(p_instances, p_executions, p_currents, p_pins)
            WITH ORDINALITY AS c (instance_id, execution_id, current, pin, place);
    END IF;
    RETURN p_pins;
END
$function$
