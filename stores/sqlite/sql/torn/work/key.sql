-- Reads the instance of an activity by an index alone.
SELECT key FROM work INDEXED BY work_identity WHERE seq = ?1
