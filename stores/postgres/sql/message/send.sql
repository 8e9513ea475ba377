-- Sends messages to instances.
SELECT {schema}.send_messages($1, $2, $3, $4, $5, $6, $7, $8)
