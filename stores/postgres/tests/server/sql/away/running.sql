-- Counts the statements that an application has under way.
SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND state = 'active'
