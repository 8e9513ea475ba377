-- Instances by each condition of a list and of a deletion in bulk, and rows that were set aside by instance.

-- The status of the current execution. Triggers keep it, so that commits of an older build are seen too.
ALTER TABLE instances ADD COLUMN current_status TEXT NOT NULL DEFAULT 'Running';
UPDATE instances
SET current_status = coalesce((
    SELECT executions.status FROM executions
    WHERE executions.key = instances.key AND executions.execution = instances.current_execution
), 'Running');
CREATE TRIGGER status_began AFTER INSERT ON executions BEGIN
    UPDATE instances SET current_status = new.status
    WHERE key = new.key AND current_execution = new.execution AND current_status <> new.status;
END;
CREATE TRIGGER status_changed AFTER UPDATE OF status ON executions WHEN new.status <> old.status BEGIN
    UPDATE instances SET current_status = new.status
    WHERE key = new.key AND current_execution = new.execution AND current_status <> new.status;
END;
CREATE TRIGGER status_of_next AFTER UPDATE OF current_execution ON instances
WHEN new.current_execution <> old.current_execution BEGIN
    UPDATE instances
    SET current_status = coalesce((
        SELECT executions.status FROM executions
        WHERE executions.key = new.key AND executions.execution = new.current_execution
    ), 'Running')
    WHERE key = new.key;
END;

CREATE INDEX instances_status ON instances (current_status, ord) WHERE name IS NOT NULL;
CREATE INDEX instances_name ON instances (name, ord) WHERE name IS NOT NULL;
CREATE INDEX instances_roots ON instances (ord) WHERE name IS NOT NULL AND parent IS NULL;
DROP INDEX instances_parent;
CREATE INDEX instances_parent ON instances (parent, ord) WHERE parent IS NOT NULL;
-- what a deletion in bulk may begin with
CREATE INDEX instances_deletable ON instances (ord)
    WHERE name IS NOT NULL AND current_status <> 'Running' AND (parent IS NULL OR orphan = 1);

CREATE INDEX set_aside_instance ON set_aside (instance);
