-- Tells the messages that leases list.
SELECT q.work_item FROM {name}.orchestrator_queue AS q, {name}.instance_locks AS l
WHERE l.instance_id = q.instance_id AND q.id = ANY (l.leased) ORDER BY q.id
