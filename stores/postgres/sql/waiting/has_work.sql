-- Tells whether any work is ready, and else when to look again.
SELECT * FROM {schema}.has_work($1)
