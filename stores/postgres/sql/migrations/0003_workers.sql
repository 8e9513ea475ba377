-- Workers, routes, and leases that ended without a commit.
--
-- A route is the handler that refused work needs. Instances keep it in their pin: a routed pin is below -1 and
-- stands for an engine version together with a handler. Work keeps it in its tag: a routed tag is '@' ('A' for
-- work on a session), the 32 characters of the handler's key, and the plain tag; plain tags are '' or begin
-- with ':', which is less. The key of a handler is a hash of its name, made by the caller.

-- The rows that runtimes keep about themselves.
CREATE TABLE {schema}.workers (
    worker_id      TEXT COLLATE "C" PRIMARY KEY,
    -- the stored forms of the tags that it accepts; NULL for all
    tags           TEXT[],
    -- whether it takes work of sessions
    serves_sessions BOOLEAN NOT NULL DEFAULT true,
    -- the lowest and the highest pins of the engine versions that it runs; NULL for all
    engine_lo      BIGINT[],
    engine_hi      BIGINT[],
    takes_unlisted BOOLEAN NOT NULL,
    is_stopped     BOOLEAN NOT NULL,
    since_ms       BIGINT NOT NULL,
    last_seen_ms   BIGINT NOT NULL,
    -- whether its handlers count as those of a live worker; clean-up clears it for a silent one
    is_listed      BOOLEAN NOT NULL,
    -- a hash of everything in the report by which work is routed; NULL: not known
    listing        TEXT,
    -- the whole report, as JSON
    report         TEXT NOT NULL
);
CREATE INDEX workers_seen ON {schema}.workers (last_seen_ms);
CREATE INDEX workers_listed ON {schema}.workers (last_seen_ms) WHERE is_listed;

-- The handlers that workers list. kind 0: orchestrations, 1: activities.
CREATE TABLE {schema}.worker_handlers (
    worker_id TEXT COLLATE "C" NOT NULL,
    kind      SMALLINT NOT NULL,
    handler   TEXT COLLATE "C" NOT NULL,
    versions  TEXT[] NOT NULL,
    is_listed BOOLEAN NOT NULL,
    PRIMARY KEY (worker_id, kind, handler)
);
CREATE INDEX worker_handlers_listed ON {schema}.worker_handlers (kind, handler) WHERE is_listed;

-- Of a routed pin: the engine version (a pin without a route), the handler, the version of the handler (NULL if any
-- does), and a hash of the last two. NULL for other pins.
ALTER TABLE {schema}.pins
    ADD COLUMN version         BIGINT,
    ADD COLUMN handler         TEXT COLLATE "C",
    ADD COLUMN handler_version TEXT,
    ADD COLUMN route           TEXT COLLATE "C";
CREATE UNIQUE INDEX pins_route ON {schema}.pins (version, route) WHERE pin < -1;

ALTER TABLE {schema}.instance_locks
    -- messages that a refusal delayed, until a worker lists the handler
    ADD COLUMN refused    BIGINT[],
    -- whether `ended_leases` has expired leases of it
    ADD COLUMN has_expired BOOLEAN NOT NULL DEFAULT false;
CREATE INDEX instance_locks_refused ON {schema}.instance_locks (pin) WHERE refused IS NOT NULL;
CREATE INDEX instance_locks_routed ON {schema}.instance_locks (pin) WHERE pin < -1;

-- codeless: a message that any worker can deal with, whatever handlers it has.
ALTER TABLE {schema}.orchestrator_queue ADD COLUMN codeless BOOLEAN NOT NULL DEFAULT false;
CREATE INDEX orchestrator_queue_codeless ON {schema}.orchestrator_queue (instance_id) WHERE codeless;

-- The routed tags that work has. Normally there are none.
CREATE TABLE {schema}.routes (
    tag     TEXT COLLATE "C" PRIMARY KEY,
    handler TEXT COLLATE "C" NOT NULL,
    plain   TEXT COLLATE "C" NOT NULL,
    -- the name of the handler, for people
    name    TEXT NOT NULL,
    -- whether its work is on sessions
    on_session BOOLEAN NOT NULL DEFAULT false
);

ALTER TABLE {schema}.worker_queue
    -- whether a refusal delays it until a worker lists the handler
    ADD COLUMN refused    BOOLEAN NOT NULL DEFAULT false,
    -- whether `ended_leases` has expired leases of it
    ADD COLUMN has_expired BOOLEAN NOT NULL DEFAULT false;
CREATE INDEX worker_queue_refused ON {schema}.worker_queue (tag) WHERE refused;
CREATE INDEX worker_queue_routed ON {schema}.worker_queue (tag) WHERE tag >= '@';

-- A fetch that accepts all tags reads what has no route in the order of age, and each route by itself: what only other
-- workers may take lies in none of the indexes that it reads.
CREATE INDEX worker_queue_free_plain ON {schema}.worker_queue ((id - 0))
    WHERE state = 1 AND session_id IS NULL AND tag < '@';
DROP INDEX {schema}.worker_queue_free_any;
CREATE INDEX heads_plain ON {schema}.heads (owner, (head + 0)) WHERE tag < '@';
DROP INDEX {schema}.heads_any;

-- Tokens of leases that ended otherwise than by their holders. reason 0: the lease expired; it is known until its
-- messages or its work are gone. reason 1: its work was withdrawn; it is known until `until_ms`.
CREATE TABLE {schema}.ended_leases (
    token       TEXT COLLATE "C" PRIMARY KEY,
    reason      SMALLINT NOT NULL,
    -- of the lease of an instance: the messages that it carried
    instance_id TEXT COLLATE "C",
    messages    BIGINT[],
    -- of the lease of work: its row
    work_id     BIGINT,
    -- when clean-up looks at it
    until_ms    BIGINT NOT NULL
);
CREATE INDEX ended_leases_until ON {schema}.ended_leases (until_ms);
CREATE INDEX ended_leases_instance ON {schema}.ended_leases (instance_id) WHERE instance_id IS NOT NULL;
CREATE INDEX ended_leases_work ON {schema}.ended_leases (work_id) WHERE work_id IS NOT NULL;
