-- Finds the instance that a token holds, until when, what it is pinned or routed to, and the messages that
-- the lease holds.
SELECT key, instance, locked_until, pin, batch FROM instances WHERE token = ?1
