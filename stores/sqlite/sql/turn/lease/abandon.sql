-- Abandons the lease of an instance: its leased messages can be fetched again (S6). ?3 is taken off the
-- delivery count of each (1 if this delivery does not count, else 0); with a time in ?4 they are delayed
-- until then.
UPDATE messages
SET token = NULL,
    attempts = max(attempts - ?3, 0),
    state = iif(?4 IS NULL OR ?4 <= ?5, state, 0),
    visible_at = coalesce(?4, visible_at)
WHERE key = ?1 AND state = 1 AND token = ?2 AND seq NOT IN (SELECT row FROM torn_messages)
