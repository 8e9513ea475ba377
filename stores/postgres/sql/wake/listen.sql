-- Registers this process as a listener until now plus $2 milliseconds, and deletes registrations that expired
-- more than ten minutes ago. Locks: the rows that it writes.
WITH gone AS (
    DELETE FROM {schema}.listeners
    WHERE until_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 600000
)
INSERT INTO {schema}.listeners (id, until_ms)
VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2)
ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms
