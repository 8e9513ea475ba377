-- Counts instances by status, executions and events.
SELECT
    (SELECT count(*) FROM instances WHERE name IS NOT NULL),
    (SELECT count(*) FROM executions),
    (SELECT count(*) FROM instances JOIN executions ON executions.key = instances.key
        AND executions.execution = instances.current_execution WHERE name IS NOT NULL AND status = 'Running'),
    (SELECT count(*) FROM instances JOIN executions ON executions.key = instances.key
        AND executions.execution = instances.current_execution WHERE name IS NOT NULL
            AND status = 'Completed'),
    (SELECT count(*) FROM instances JOIN executions ON executions.key = instances.key
        AND executions.execution = instances.current_execution WHERE name IS NOT NULL AND status = 'Failed'),
    (SELECT count(*) FROM history)
