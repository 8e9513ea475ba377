-- Ends the lease of a session. The `owner` column keeps the last owner (S13).
UPDATE sessions SET held = 0, locked_until = min(locked_until, ?2) WHERE id = ?1
