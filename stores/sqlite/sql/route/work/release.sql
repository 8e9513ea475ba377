-- Makes an activity ready that a refusal delays; ?2 is now.
UPDATE work SET state = 1, visible_at = min(visible_at, ?2), since = ?2 WHERE seq = ?1 AND state = 0
