-- Appends events without a lease (S8).
SELECT * FROM {schema}.append_events($1, $2, $3, $4, $5, $6, $7)
