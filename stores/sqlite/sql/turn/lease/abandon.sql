-- Abandons the lease of an instance: its leased messages are available again (S6). ?3 deliveries are
-- uncounted; with a time in ?4 they wait until then.
UPDATE messages
SET token = NULL,
    attempts = max(attempts - ?3, 0),
    state = iif(?4 IS NULL OR ?4 <= ?5, state, 0),
    visible_at = coalesce(?4, visible_at)
WHERE key = ?1 AND state = 1 AND token = ?2
