-- Gives back what was leased for somebody who is gone (S5).
SELECT {schema}.unlease_work_items($1, $2, $3, $4, $5)
