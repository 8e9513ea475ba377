-- Writes a number.
INSERT INTO {schema}.written (number) VALUES ($1)
