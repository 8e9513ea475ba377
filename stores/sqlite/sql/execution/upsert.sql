-- Records a commit in the row of an execution; the first commit inserts the row.
INSERT INTO executions (key, execution, run, status, output, failure, pinned, started_at, completed_at)
VALUES (?1, ?2, ?3, coalesce(?4, 'Running'), ?5, ?6, ?7, ?8, iif(coalesce(?4, 'Running') = 'Running', NULL,
    ?8))
ON CONFLICT (key, execution) DO UPDATE SET
    status = coalesce(?4, status),
    output = iif(?4 IS NULL, output, ?5),
    failure = iif(?4 IS NULL, failure, ?6),
    pinned = coalesce(?7, pinned),
    completed_at = iif(coalesce(?4, 'Running') = 'Running', completed_at, ?8)
RETURNING run, status
