-- Makes an instance idle although it has ready messages, because its start is delayed and must come first
-- (S2). Keeps the time since which the messages wait.
UPDATE instances SET turn = 0, head = NULL, token = NULL, locked_until = NULL WHERE key = ?1
