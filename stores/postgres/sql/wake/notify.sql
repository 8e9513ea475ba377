-- Tells other processes what became runnable.
SELECT {schema}.notify($1, $2)
