-- Takes unreadable messages out of a lease (S15).
SELECT * FROM {schema}.pass_over_messages($1, $2, $3, $4, $5, $6)
