-- Counts derived rows that do not fit what they are derived from.
SELECT 'heads of instances', count(*) FROM {name}.instance_locks l
WHERE l.lock_token IS NULL
  AND l.head IS DISTINCT FROM (
      SELECT min(q.id) FROM {name}.orchestrator_queue q WHERE q.instance_id = l.instance_id AND q.state = 1
  )
UNION ALL
SELECT 'messages of nobody', count(*) FROM {name}.orchestrator_queue q
WHERE NOT EXISTS (SELECT 1 FROM {name}.instance_locks l WHERE l.instance_id = q.instance_id)
UNION ALL
SELECT 'heads of sessions', count(*) FROM {name}.heads h
WHERE h.head IS DISTINCT FROM (
    SELECT min(w.id) FROM {name}.worker_queue w
    WHERE w.session_id = h.session_id AND w.session_scope = h.instance_id AND w.tag = h.tag AND w.state = 1
)
UNION ALL
SELECT 'ready work without a head', count(*) FROM {name}.worker_queue w
WHERE w.session_id IS NOT NULL AND w.state = 1
  AND NOT EXISTS (
      SELECT 1 FROM {name}.heads h
      WHERE h.session_id = w.session_id AND h.instance_id = w.session_scope AND h.tag = w.tag
  )
UNION ALL
SELECT 'work without a line', count(*) FROM {name}.worker_queue w
WHERE w.session_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM {name}.lines l WHERE l.session_id = w.session_id AND l.instance_id = w.session_scope)
UNION ALL
SELECT 'statuses of instances', count(*) FROM {name}.instances i
WHERE NOT EXISTS (
    SELECT 1 FROM {name}.executions e
    WHERE e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id AND e.status = i.status
)
