-- Writes the row of a worker. The time of its first report stays.
INSERT INTO workers (id, since, last_seen, is_stopped, takes_unlisted, is_listed, accepts, handlers, report)
VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (id) DO UPDATE
SET last_seen = excluded.last_seen, is_stopped = excluded.is_stopped,
    takes_unlisted = excluded.takes_unlisted, is_listed = excluded.is_listed, accepts = excluded.accepts,
    handlers = excluded.handlers, report = excluded.report
