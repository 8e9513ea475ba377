-- Describes an instance that has no row in `instances`: its latest execution id, the status of that
-- execution, and its OrchestrationStarted event. Locks: none.
SELECT latest.execution_id, e.status, e.output, e.failure, (
    SELECT h.event_data FROM {schema}.history AS h
    WHERE h.instance_id = $1 AND h.execution_id = latest.execution_id
        AND h.event_type = 'OrchestrationStarted'
    ORDER BY h.event_id LIMIT 1
) AS started
FROM (
    SELECT coalesce(max(x.execution_id), 1) AS execution_id FROM {schema}.executions AS x
        WHERE x.instance_id = $1
) AS latest
LEFT JOIN {schema}.executions AS e ON e.instance_id = $1 AND e.execution_id = latest.execution_id
