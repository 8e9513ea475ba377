-- What was applied to this schema: migrations by version, functions by name, each with the hash of its file.
CREATE TABLE IF NOT EXISTS {schema}.steadfast_migrations (
    version BIGINT PRIMARY KEY,
    hash    TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS {schema}.steadfast_functions (
    name TEXT COLLATE "C" PRIMARY KEY,
    hash TEXT NOT NULL
)
