-- Renews leases of work (S4).
SELECT * FROM {schema}.renew_work_items($1, $2, $3)
