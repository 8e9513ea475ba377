-- Finds the instance that a token holds, until when, and what it is pinned or routed to.
SELECT key, instance, locked_until, pin FROM instances WHERE token = ?1
