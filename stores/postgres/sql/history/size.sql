-- Returns the number of events and bytes in the history of the latest execution. No row if the instance has
-- neither a row nor a history. Locks: none.
SELECT latest.execution_id, count(h.event_id) AS events,
    coalesce(sum(octet_length(h.event_data)), 0)::bigint AS bytes
FROM (
    SELECT coalesce((SELECT max(e.execution_id) FROM {schema}.executions AS e WHERE e.instance_id = $1),
        1) AS execution_id
) AS latest
LEFT JOIN {schema}.history AS h ON h.instance_id = $1 AND h.execution_id = latest.execution_id
WHERE EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = $1)
   OR EXISTS (SELECT 1 FROM {schema}.history AS any_history WHERE any_history.instance_id = $1)
GROUP BY latest.execution_id
