-- Counts and delays an activity that cannot be read (S15).
UPDATE work SET state = 0, unreadable = 1, visible_at = ?2, attempts = attempts + 1 WHERE seq = ?1
