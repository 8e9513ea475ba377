-- Tells whether a worker lists a handler, with a version if one is given.
SELECT EXISTS (
    SELECT 1 FROM worker_handlers
    WHERE kind = ?1 AND name = ?2 AND worker = ?3 AND (?4 = '' OR version = ?4)
)
