-- Renews the sessions of a process (S13).
SELECT * FROM {schema}.renew_sessions($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
