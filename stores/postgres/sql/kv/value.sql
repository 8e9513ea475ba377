-- Reads one key: what the current execution changed counts before what earlier ones left.
SELECT value FROM {schema}.kv WHERE instance_id = $1 AND layer IN (0, 1) AND key = $2 ORDER BY layer DESC
    LIMIT 1
