-- The order of messages by the moment at which each became due, lives of parents, ends of instances, and
-- everything that a row needs to come back after it was set aside.

-- `due_ms`: when the message first became due: when it was sent plus its own delay, or when its timer fires.
-- The delay of an abandoned lease does not change it. NULL in rows of older functions: `visible_ms` counts.
-- `parent_...`: of the start of a child, and of the answer to one, the call of the parent that it belongs to;
-- `parent_life` is the `ord` of that parent. A message for a former life of a parent is a stray.
ALTER TABLE {schema}.orchestrator_queue
    ADD COLUMN due_ms              BIGINT,
    ADD COLUMN parent_instance_id  TEXT COLLATE "C",
    ADD COLUMN parent_life         BIGINT,
    ADD COLUMN parent_execution_id BIGINT,
    ADD COLUMN parent_event_id     BIGINT;

-- `dropped`: the message of a timer that the code does not await any more. It fires, and is not told of.
ALTER TABLE {schema}.orchestrator_queue ADD COLUMN dropped BOOLEAN NOT NULL DEFAULT false;

-- The messages of an instance by state, in the order of a batch. What is looked for by these expressions can
-- only be found in these indexes, so no plan takes another one and sorts.
CREATE INDEX orchestrator_queue_order
    ON {schema}.orchestrator_queue (instance_id, (state + 0), (coalesce(due_ms, visible_ms)), id);
CREATE INDEX orchestrator_queue_of_parents
    ON {schema}.orchestrator_queue ((instance_id || '')) WHERE parent_life IS NOT NULL;

-- `parent_life`: the life of the parent whose start made the instance. `ended_ms`: when its current execution
-- ended, NULL while it goes on. `is_orphan`: a child whose parent was gone once, so that it is deleted by age
-- like a root, unless an instance of the parent's id exists again.
ALTER TABLE {schema}.instances
    ADD COLUMN parent_life BIGINT,
    ADD COLUMN ended_ms    BIGINT,
    ADD COLUMN is_orphan   BOOLEAN NOT NULL DEFAULT false;
UPDATE {schema}.instances AS i
SET ended_ms = (extract(epoch FROM e.completed_at) * 1000)::bigint
FROM {schema}.executions AS e
WHERE e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  AND e.completed_at IS NOT NULL AND i.status <> 'Running';
UPDATE {schema}.instances AS i SET is_orphan = true
WHERE i.parent_instance_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM {schema}.instances AS p WHERE p.instance_id = i.parent_instance_id);
CREATE INDEX instances_ended ON {schema}.instances ((ended_ms + 0), ord)
    WHERE (parent_instance_id IS NULL OR is_orphan) AND ended_ms IS NOT NULL;

-- The longest lease that was ever granted: a lease that ends later was granted before the clock was set back.
ALTER TABLE {schema}.floors ADD COLUMN longest_ms BIGINT NOT NULL DEFAULT 600000;
UPDATE {schema}.floors SET longest_ms = greatest(600000, (
    SELECT max(leases.until) FROM (
        SELECT max(locked_until) AS until FROM {schema}.instance_locks WHERE lock_token IS NOT NULL
        UNION ALL
        SELECT max(locked_until) FROM {schema}.worker_queue WHERE state = 2
        UNION ALL
        SELECT max(locked_until) FROM {schema}.sessions WHERE held
    ) AS leases
) - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);

-- The other columns of the row that was set aside. `starts` is NULL in rows of older functions.
ALTER TABLE {schema}.set_aside
    ADD COLUMN starts              BOOLEAN,
    ADD COLUMN due_ms              BIGINT,
    ADD COLUMN parent_instance_id  TEXT COLLATE "C",
    ADD COLUMN parent_life         BIGINT,
    ADD COLUMN parent_execution_id BIGINT,
    ADD COLUMN parent_event_id     BIGINT,
    ADD COLUMN execution_id        BIGINT,
    ADD COLUMN activity_id         BIGINT,
    ADD COLUMN session_id          TEXT COLLATE "C",
    ADD COLUMN session_scope       TEXT COLLATE "C",
    ADD COLUMN tag                 TEXT COLLATE "C",
    ADD COLUMN traceparent         TEXT;
