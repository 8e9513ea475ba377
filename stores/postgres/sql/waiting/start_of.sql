-- Reads the first message of an instance that starts an execution. Locks: none.
SELECT q.work_item FROM {schema}.orchestrator_queue AS q
WHERE q.instance_id = $1 AND q.state IN (0, 1) AND q.starts
ORDER BY q.id LIMIT 1
