-- Lists workers in the order of their ids, behind one of them.
SELECT id, since, last_seen, is_stopped, takes_unlisted, accepts, handlers, report FROM workers
WHERE ?1 IS NULL OR id > ?1
ORDER BY id LIMIT ?2
