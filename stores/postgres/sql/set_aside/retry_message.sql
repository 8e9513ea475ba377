-- Puts a message that was set aside back into its queue.
SELECT {schema}.retry_message_set_aside($1, $2, $3, $4, $5, $6) AS found
