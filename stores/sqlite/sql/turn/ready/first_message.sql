-- Finds the oldest ready message of an instance, and what the instance is pinned or routed to.
SELECT min(seq), (SELECT pin FROM instances WHERE instances.key = ?1)
FROM messages WHERE key = ?1 AND state = 1 AND seq NOT IN (SELECT row FROM torn_messages)
