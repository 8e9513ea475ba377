-- Tells whether an instance has not ended: its current execution runs, or the start of its next one waits
-- (F12). Starts with a life are left to `life/starts`: they may be of a former one.
SELECT EXISTS (
    SELECT 1 FROM instances JOIN executions ON executions.key = instances.key
    WHERE instances.instance = ?1
      AND executions.status = 'Running'
      AND executions.execution = iif(
          instances.name IS NULL,
          (SELECT max(execution) FROM executions AS latest WHERE latest.key = instances.key),
          instances.current_execution
      )
) OR EXISTS (
    SELECT 1 FROM messages
    WHERE messages.key = (SELECT key FROM instances WHERE instance = ?1) AND starts = 1 AND life IS NULL
      AND seq NOT IN (SELECT row FROM torn_messages)
)
