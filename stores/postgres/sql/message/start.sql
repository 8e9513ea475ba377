-- Starts those of the given instances that do not exist (S17).
SELECT * FROM {schema}.start_instances($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
