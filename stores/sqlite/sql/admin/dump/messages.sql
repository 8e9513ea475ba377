-- Describes every message in one line, without its payload, for debugging.
SELECT printf('%d to %s state %d visible at %d attempts %d token %s', seq, instance, state, visible_at,
    attempts, messages.token)
FROM messages JOIN instances ON instances.key = messages.key ORDER BY seq
