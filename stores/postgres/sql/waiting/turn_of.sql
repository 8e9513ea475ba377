-- Tells what waits for the turns of an instance (S2, S5, S9).
SELECT * FROM {schema}.turn_of($1, $2)
