-- Notifies other processes of what became runnable.
SELECT {schema}.notify($1, $2)
