-- Abandons leases of work (S4, S6).
SELECT * FROM {schema}.abandon_work_items($1, $2, $3, $4, $5, $6)
