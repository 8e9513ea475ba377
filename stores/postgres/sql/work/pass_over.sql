-- Passes over a leased activity that cannot be read (S15).
SELECT * FROM {schema}.pass_over_work($1, $2, $3, $4, $5, $6)
