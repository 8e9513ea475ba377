-- Lists the sessions that an execution watches, in the order of keys.
SELECT instance, session_id FROM watchers WHERE key = ?1 AND execution = ?2 ORDER BY instance, session_id
