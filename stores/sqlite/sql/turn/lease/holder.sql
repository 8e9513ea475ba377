-- Finds the instance that a token holds, and until when.
SELECT key, instance, locked_until, name IS NOT NULL FROM instances WHERE token = ?1
