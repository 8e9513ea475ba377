-- Removes what nobody needs of ended sessions, page by page (S13).
SELECT * FROM {schema}.cleanup_sessions($1, $2, $3)
