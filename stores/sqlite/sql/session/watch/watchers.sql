-- Lists the executions that watch a session, and whether the session was claimed since each began to watch.
SELECT instances.instance, watchers.execution, watchers.has_seen
FROM watchers JOIN instances ON instances.key = watchers.key
WHERE watchers.instance = ?1 AND watchers.session_id = ?2
