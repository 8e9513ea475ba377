-- Starts instances that do not exist.
SELECT * FROM {schema}.start_instances($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
