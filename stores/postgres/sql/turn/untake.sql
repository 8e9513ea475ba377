-- Gives back leases that nobody came to take, uncounted.
SELECT * FROM {schema}.abandon_turns($1, NULL, array_fill(true, ARRAY[cardinality($1)]), $2, p_ended_too => true)
