-- Ends the lease of a session; the owner stays written as the last one (S13).
UPDATE sessions SET held = 0, locked_until = min(locked_until, ?2) WHERE id = ?1
