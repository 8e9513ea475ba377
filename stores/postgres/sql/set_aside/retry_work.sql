-- Puts an activity that was set aside back into its queue.
SELECT {schema}.retry_work_set_aside($1, $2, $3, $4, $5, $6, $7, $8, $9) AS found
