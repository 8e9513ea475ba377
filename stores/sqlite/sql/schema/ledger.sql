-- Makes the table of the migrations that were applied, if there is none.
CREATE TABLE IF NOT EXISTS steadfast_migrations (
    version INTEGER PRIMARY KEY,
    hash    TEXT NOT NULL
) STRICT
