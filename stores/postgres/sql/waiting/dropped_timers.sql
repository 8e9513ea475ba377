-- Reads the queued messages of timers that the code of an instance does not await any more, and the number of
-- its latest execution, which they are of. Only what the engine has written is marked, so the text of the
-- message tells the execution. Locks: none.
SELECT q.work_item, latest.execution
FROM (SELECT {schema}.latest_execution_id($1) AS execution) AS latest
JOIN {schema}.orchestrator_queue AS q ON q.instance_id = $1
WHERE q.state IN (0, 1) AND q.dropped
  AND position('"execution_id":' || latest.execution || ',' IN q.work_item) > 0
LIMIT $2
