-- Extends the leases of activities (S4).
SELECT * FROM {schema}.renew_work_items($1, $2, $3)
