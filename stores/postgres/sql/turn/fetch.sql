-- Leases ready instances.
SELECT * FROM {schema}.fetch_turns($1, $2, $3, $4, $5, true)
