-- Reads the value of one key: from the current execution if it changed the key, else as earlier executions
-- left it. Locks: none.
SELECT value FROM {schema}.kv WHERE instance_id = $1 AND layer IN (0, 1) AND key = $2 ORDER BY layer DESC
    LIMIT 1
