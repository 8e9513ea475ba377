-- Counts what is live, by indexes that hold nothing else: running instances, messages, activities.
SELECT
    (SELECT count(*) FROM executions JOIN instances ON instances.key = executions.key
        WHERE executions.status = 'Running' AND instances.name IS NOT NULL
          AND instances.current_execution = executions.execution),
    (SELECT count(*) FROM messages) - (SELECT count(*) FROM torn_messages),
    (SELECT count(*) FROM work) - (SELECT count(*) FROM torn_work)
