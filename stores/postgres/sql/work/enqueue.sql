-- Queues one piece of work that no turn asked for.
SELECT {schema}.enqueue_work($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
