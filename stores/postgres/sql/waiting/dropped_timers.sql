-- Reads the queued messages of timers that the code of an instance does not await any more, and the number of
-- its latest execution. Locks: none.
SELECT q.work_item, {schema}.latest_execution_id(q.instance_id) AS execution
FROM {schema}.orchestrator_queue AS q
WHERE q.instance_id = $1 AND q.state IN (0, 1) AND q.dropped
LIMIT $2
