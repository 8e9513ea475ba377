-- The migrations that were applied.
CREATE TABLE IF NOT EXISTS steadfast_migrations (
    version INTEGER PRIMARY KEY,
    hash    TEXT NOT NULL
) STRICT
