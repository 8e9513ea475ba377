-- Takes an instance out of the ready ones although it has messages: they wait for its start (S2). Since when is kept.
UPDATE instances SET turn = 0, head = NULL, token = NULL, locked_until = NULL WHERE key = ?1
