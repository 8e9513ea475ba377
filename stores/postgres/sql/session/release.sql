-- Releases claims of a process (S13).
SELECT * FROM {schema}.release_sessions($1, $2, $3, $4, $5, $6, $7, $8)
