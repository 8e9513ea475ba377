-- Makes the messages of an instance ready that a refusal delays; ?2 is now.
UPDATE messages SET state = 1, visible_at = min(visible_at, ?2), refused = 0
WHERE key = ?1 AND state = 0 AND refused = 1
    AND seq NOT IN (SELECT row FROM torn_messages)
