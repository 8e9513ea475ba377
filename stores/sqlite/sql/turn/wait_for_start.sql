-- Makes an instance idle although it has ready messages: they wait for its start (S2). Since when they wait
-- is kept.
UPDATE instances SET turn = 0, head = NULL, token = NULL, locked_until = NULL WHERE key = ?1
