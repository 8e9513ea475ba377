-- Notifies other processes of what the transaction made runnable. Sends nothing if no other process is
-- registered as a listener, because each notifying transaction takes a lock of the whole database when it
-- commits.
-- Locks: no row locks.
CREATE OR REPLACE FUNCTION {schema}.notify(p_notify TEXT, p_me TEXT)
RETURNS void
LANGUAGE plpgsql
AS $function$
BEGIN
    IF p_notify IS NOT NULL AND EXISTS (
        SELECT 1 FROM {schema}.listeners l
        WHERE l.id IS DISTINCT FROM p_me
          AND l.until_ms > (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    ) THEN
        PERFORM pg_notify({channel}, p_notify);
    END IF;
END
$function$
