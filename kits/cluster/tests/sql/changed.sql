-- Says what was changed at the last start.
SELECT current_setting('work_mem') || CASE WHEN pg_is_in_recovery() THEN ' on a standby' ELSE '' END
