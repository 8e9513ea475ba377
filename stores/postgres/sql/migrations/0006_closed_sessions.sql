-- Sessions that were closed while their leases lasted: no other process claims such a session before its
-- former owner has detached it, should it be opened again.

-- The claims that were closed. A row is removed when the former owner has detached the session, and when the
-- session is opened again.
CREATE TABLE {schema}.closed_sessions (
    instance_id  TEXT COLLATE "C" NOT NULL,
    session_id   TEXT COLLATE "C" NOT NULL,
    worker_id    TEXT COLLATE "C" NOT NULL,
    incarnation  BIGINT,
    epoch        BIGINT NOT NULL,
    locked_until BIGINT NOT NULL,
    PRIMARY KEY (instance_id, session_id)
);

-- The epoch of the claim that was closed, if the lease in the row is that of the former owner. NULL as soon
-- as the session is claimed.
ALTER TABLE {schema}.sessions ADD COLUMN closed_epoch BIGINT;
