-- The order of a batch, the lives of instances, and what is counted or deleted without a walk over all rows.

-- The moment at which a message first became due: its time of sending plus its own delay, the fire time of a
-- timer. The delay of an abandon does not change it. NULL for a row of an older build, for which `visible_at`
-- stands.
ALTER TABLE messages ADD COLUMN due INTEGER;
UPDATE messages SET due = visible_at;
CREATE INDEX messages_order ON messages (key, state, coalesce(due, visible_at));
CREATE INDEX messages_starts_order ON messages (key, state, coalesce(due, visible_at)) WHERE starts = 1;

-- The life of an instance is its `ord`: never given twice, kept over continue-as-new. The start of a child
-- carries the life of the parent that sent it, the row of the child keeps it, and its answer carries it. NULL
-- for a row of an older build, or if no turn sent the message.
ALTER TABLE messages ADD COLUMN life INTEGER;
ALTER TABLE instances ADD COLUMN parent_life INTEGER;

-- 1 for the message of a timer that the code does not await any more: it fires, and is not told of.
ALTER TABLE messages ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;

-- How many fetches have used the last claim of a session, the claiming one included, without those that were
-- dropped before they returned. A claim that only dropped fetches have used is released.
ALTER TABLE sessions ADD COLUMN uses INTEGER NOT NULL DEFAULT 1;

-- What else a row had that was set aside, so that it comes back as it was: of a message whether it starts an
-- execution, when it was due, and its life; of an activity its execution, its id, its tag and its session; of
-- both the trace context. NULL for rows that an older build set aside.
ALTER TABLE set_aside ADD COLUMN traceparent TEXT;
ALTER TABLE set_aside ADD COLUMN starts INTEGER;
ALTER TABLE set_aside ADD COLUMN due INTEGER;
ALTER TABLE set_aside ADD COLUMN life INTEGER;
ALTER TABLE set_aside ADD COLUMN execution INTEGER;
ALTER TABLE set_aside ADD COLUMN activity INTEGER;
ALTER TABLE set_aside ADD COLUMN tag TEXT;
ALTER TABLE set_aside ADD COLUMN session_scope TEXT;
ALTER TABLE set_aside ADD COLUMN session_id TEXT;

-- When the current execution of an instance ended; NULL while it has not. A trigger keeps it, so that commits
-- of an older build are seen too.
ALTER TABLE instances ADD COLUMN ended_at INTEGER;
UPDATE instances
SET ended_at = (
    SELECT completed_at FROM executions
    WHERE executions.key = instances.key AND executions.execution = instances.current_execution
      AND executions.status IN ('Completed', 'Failed')
);
CREATE TRIGGER execution_began AFTER INSERT ON executions BEGIN
    UPDATE instances SET ended_at = iif(new.status IN ('Completed', 'Failed'), new.completed_at, NULL)
    WHERE key = new.key AND current_execution <= new.execution;
END;
CREATE TRIGGER execution_changed AFTER UPDATE OF status ON executions WHEN new.status <> old.status BEGIN
    UPDATE instances SET ended_at = iif(new.status IN ('Completed', 'Failed'), new.completed_at, NULL)
    WHERE key = new.key AND current_execution <= new.execution;
END;
CREATE INDEX executions_running ON executions (key, execution) WHERE status = 'Running';
CREATE INDEX instances_ended_roots ON instances (ended_at) WHERE ended_at IS NOT NULL AND parent IS NULL;
CREATE INDEX instances_ended_children ON instances (ended_at)
    WHERE ended_at IS NOT NULL AND parent IS NOT NULL;
