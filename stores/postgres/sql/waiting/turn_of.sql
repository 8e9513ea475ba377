-- Describes the messages of an instance (S2, S5, S9).
SELECT * FROM {schema}.turn_of($1, $2)
