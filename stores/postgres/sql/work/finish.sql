-- Deletes leased work and sends its completions (S4, S11).
SELECT * FROM {schema}.finish_work_items($1, $2, $3, $4, $5, $6, $7)
