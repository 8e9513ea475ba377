-- Creates the ledger of this schema: which migrations were applied and which functions were created, each
-- with the hash of its file and the version of Steadfast that did it. An older version leaves functions alone
-- that a newer one created.
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
