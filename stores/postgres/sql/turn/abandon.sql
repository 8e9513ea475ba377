-- Abandons leases of instances (S6).
SELECT * FROM {schema}.abandon_turns($1, $2, $3, $4, $5, $6)
