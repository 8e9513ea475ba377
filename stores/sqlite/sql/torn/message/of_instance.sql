-- Lists the messages of an instance that are not known to be torn, by indexes alone.
SELECT seq FROM messages WHERE key = ?1 AND state = 1 AND seq NOT IN (SELECT row FROM torn_messages)
UNION ALL
SELECT seq FROM messages WHERE key = ?1 AND state = 0 AND seq NOT IN (SELECT row FROM torn_messages)
