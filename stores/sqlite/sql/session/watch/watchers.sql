-- Lists the executions that watch a session, and whether each knows of a claim.
SELECT instances.instance, watchers.execution, watchers.has_seen
FROM watchers JOIN instances ON instances.key = watchers.key
WHERE watchers.instance = ?1 AND watchers.session_id = ?2
