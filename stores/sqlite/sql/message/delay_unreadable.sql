-- Counts and delays a message that cannot be read (S15).
UPDATE messages SET state = 0, visible_at = ?2, attempts = attempts + 1, token = NULL WHERE seq = ?1
