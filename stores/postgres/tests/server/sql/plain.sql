-- Counts the connections of an application that are in the clear.
SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE NOT s.ssl AND a.application_name = '{name}'
