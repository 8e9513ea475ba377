-- Reads by which commit an instance stands as it does: the change of its row, the last event of a history
-- that has no row, and whether its current execution has ended.
SELECT iif(name IS NULL, NULL, change),
    iif(name IS NULL, (
        SELECT event_id FROM history WHERE history.key = instances.key
        ORDER BY execution DESC, event_id DESC LIMIT 1
    ), NULL),
    coalesce((
        SELECT status IN ('Completed', 'Failed') FROM executions
        WHERE executions.key = instances.key AND executions.execution = instances.current_execution
    ), 0)
FROM instances WHERE instance = ?1
