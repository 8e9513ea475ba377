-- What was applied to this schema: migrations by version, functions by name and parameters, each with the hash of its file and
-- the version of Steadfast that did it. An older version leaves functions alone that a newer one made.
CREATE TABLE {schema}.steadfast_migrations (
    version    BIGINT PRIMARY KEY,
    hash       TEXT NOT NULL,
    made_by    TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE TABLE {schema}.steadfast_functions (
    name      TEXT COLLATE "C" PRIMARY KEY,
    arguments TEXT NOT NULL,
    hash      TEXT NOT NULL,
    made_by   TEXT NOT NULL,
    made_at   TIMESTAMPTZ NOT NULL DEFAULT now()
)
