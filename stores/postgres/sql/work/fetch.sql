-- Leases work for requests that differ only in their worker (S5, S13, S14, S18).
SELECT * FROM {schema}.fetch_work_items($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, true)
