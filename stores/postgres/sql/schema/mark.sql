-- Reads the setting by which the store recognises a direct connection: a pooler refuses startup parameters or
-- ignores them. Locks: none.
SELECT current_setting('steadfast.direct', true)
