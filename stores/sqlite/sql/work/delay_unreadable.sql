-- Counts and delays an activity that cannot be read (S15). The mark of a refusal ends with this delivery
-- (S21).
UPDATE work SET state = 0, unreadable = 1, visible_at = ?2, attempts = attempts + 1, refused = 0
WHERE seq = ?1
