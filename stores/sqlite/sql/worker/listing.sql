-- Lists what live workers with a handler accept; ?4 is the latest time of a last report that is too long ago.
SELECT workers.accepts
FROM worker_handlers JOIN workers ON workers.id = worker_handlers.worker
WHERE worker_handlers.kind = ?1
  AND worker_handlers.name = ?2
  AND (?3 = '' OR worker_handlers.version = ?3)
  AND workers.is_stopped = 0
  AND workers.last_seen > ?4
