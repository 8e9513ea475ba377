-- Calls it as the first version does.
SELECT * FROM {schema}.doubled($1)
