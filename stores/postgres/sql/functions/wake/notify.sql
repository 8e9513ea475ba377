-- Tells other processes what a transaction made runnable: one notification at most, and none when nobody else listens,
-- because each takes a lock of the whole database at commit (L2). Takes no lock of a row.
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
