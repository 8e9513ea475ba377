-- Abandons leases of work that no caller received (S5).
SELECT {schema}.unlease_work_items($1, $2, $3, $4, $5)
