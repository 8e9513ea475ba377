-- Renews leases of instances (S4).
SELECT * FROM {schema}.renew_turns($1, $2, $3)
