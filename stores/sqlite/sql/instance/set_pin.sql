-- Pins an instance to the engine version of its current execution.
UPDATE instances
SET pin = coalesce((
    SELECT pins.id FROM executions JOIN pins ON pins.version = executions.pinned
    WHERE executions.key = ?1 AND executions.execution = instances.current_execution
), 0)
WHERE key = ?1
