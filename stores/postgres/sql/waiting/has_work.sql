-- Tells whether any activity is ready, and else when to look again.
SELECT * FROM {schema}.has_work($1)
