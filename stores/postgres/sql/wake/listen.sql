-- Says that this process listens, for the next while, and forgets those that stopped saying so long ago.
WITH gone AS (
    DELETE FROM {schema}.listeners
    WHERE until_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 600000
)
INSERT INTO {schema}.listeners (id, until_ms)
VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2)
ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms
