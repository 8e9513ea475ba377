-- Removes unused sessions, page by page (S13).
SELECT * FROM {schema}.cleanup_sessions($1, $2, $3)
