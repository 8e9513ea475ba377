-- Ends the lease of unreadable work (S15).
SELECT * FROM {schema}.pass_over_work($1, $2, $3, $4, $5, $6)
