-- Gives up the messages of an instance that cannot be read, because the instance is deleted.
UPDATE torn_messages SET until = NULL WHERE row IN (SELECT seq FROM messages WHERE key = ?1 AND state = 0)
    OR row IN (SELECT seq FROM messages WHERE key = ?1 AND state = 1)
