-- Counts and delays a message that cannot be read (S15). The mark of a refusal ends with this delivery (S21).
UPDATE messages SET state = 0, visible_at = ?2, attempts = attempts + 1, token = NULL, refused = 0
WHERE seq = ?1
