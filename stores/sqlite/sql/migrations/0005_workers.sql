-- Workers, the routes of work that a worker refused, and leases that ended without their holder.

-- One row for each start of a runtime, written by its reports.
CREATE TABLE workers (
    id             TEXT PRIMARY KEY,
    since          INTEGER NOT NULL,
    last_seen      INTEGER NOT NULL,
    is_stopped     INTEGER NOT NULL,
    takes_unlisted INTEGER NOT NULL,
    -- 1 while its handlers are in `worker_handlers`: a worker that stopped or fell silent has none there
    is_listed      INTEGER NOT NULL,
    -- what it accepts (tags, sessions, engine versions), its handlers, and the rest of its report, as JSON
    accepts        TEXT NOT NULL,
    handlers       TEXT NOT NULL,
    report         TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX workers_seen ON workers (last_seen);
CREATE INDEX workers_listed ON workers (last_seen) WHERE is_listed = 1;

-- Which workers have a handler. kind 0: orchestrations, 1: activities. `version` is '' for none and begins
-- with ':' otherwise.
CREATE TABLE worker_handlers (
    kind    INTEGER NOT NULL,
    name    TEXT NOT NULL,
    worker  TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (kind, name, worker, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX worker_handlers_of ON worker_handlers (worker);

-- The handlers that refused work needs: few, so that a fetch can look for each. kind 0: turns, 1: work.
-- `pin` is the engine version that the routed instances are pinned to, of work 1 if it is on a session; `tag`
-- is the stored tag of routed work.
--
-- Routed rows stand where a build without this table does not look. A routed instance has the negative number
-- of its route as `pin`; routed work without a session has it as `session`; routed work on a session has '>'
-- and the number as `tag`, and '>' in front of the owner of its head, whichever build writes the head.
CREATE TABLE routes (
    id      INTEGER PRIMARY KEY,
    kind    INTEGER NOT NULL,
    name    TEXT NOT NULL,
    version TEXT NOT NULL,
    pin     INTEGER NOT NULL,
    tag     TEXT NOT NULL,
    UNIQUE (kind, name, version, pin, tag)
) STRICT;

CREATE TRIGGER heads_routed AFTER INSERT ON heads WHEN NEW.tag >= '>' AND NEW.owner < '>' BEGIN
    UPDATE heads SET owner = '>' || NEW.owner WHERE session = NEW.session AND tag = NEW.tag;
END;
CREATE TRIGGER heads_owned AFTER UPDATE OF owner ON heads WHEN NEW.tag >= '>' AND NEW.owner < '>' BEGIN
    UPDATE heads SET owner = '>' || NEW.owner WHERE session = NEW.session AND tag = NEW.tag;
END;

-- `refused` is 1 for what was refused while no live worker had the handler, until the next lease.
ALTER TABLE instances ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
CREATE INDEX instances_routed ON instances (pin) WHERE pin < 0;
CREATE INDEX instances_refused ON instances (pin) WHERE refused = 1;
ALTER TABLE messages ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
-- 0 for a termination, which any worker can carry out
ALTER TABLE messages ADD COLUMN needs_code INTEGER NOT NULL DEFAULT 1;
CREATE INDEX messages_terminations ON messages (key, state) WHERE needs_code = 0;
-- A termination that an older build writes, which knows neither `due` nor routes, ends the route of its
-- instance too, and the delays of the refusal with it.
CREATE TRIGGER message_of_older_build AFTER INSERT ON messages
WHEN NEW.due IS NULL AND substr(NEW.item, 1, 20) = '{"TerminateInstance"' BEGIN
    UPDATE messages SET needs_code = 0 WHERE seq = NEW.seq;
    UPDATE messages SET state = 1, visible_at = min(visible_at, NEW.visible_at), refused = 0
    WHERE key = NEW.key AND state = 0 AND refused = 1 AND NEW.state = 1;
    UPDATE instances SET refused = 0, pin = coalesce((SELECT pin FROM routes WHERE id = -instances.pin), 0)
    WHERE key = NEW.key AND pin < 0 AND NEW.state = 1;
END;
ALTER TABLE work ADD COLUMN route INTEGER;
ALTER TABLE work ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
CREATE INDEX work_routed ON work (route) WHERE route IS NOT NULL;
CREATE INDEX work_refused ON work (route) WHERE refused = 1;

-- Leases that ended without their holder. kind 0: a turn that expired, with a row for each message that it
-- held; 1: work that expired; 2: work that was withdrawn. `look_at` is when the clean-up looks at the row.
CREATE TABLE ended_leases (
    token   TEXT NOT NULL,
    row     INTEGER NOT NULL,
    kind    INTEGER NOT NULL,
    look_at INTEGER NOT NULL,
    PRIMARY KEY (token, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_leases_look ON ended_leases (look_at);

-- Rows of `messages` and `work` that the database cannot read, because a page of the file is torn. Such a row
-- can neither be changed nor removed, so every statement leaves out the rows that are listed here. `key` is
-- the instance, NULL if it is not known. A row is read again at `until`; NULL if it is given up: it was set
-- aside, or removed as far as that is possible.
CREATE TABLE torn_messages (
    row      INTEGER PRIMARY KEY,
    key      INTEGER,
    attempts INTEGER NOT NULL,
    until    INTEGER
) STRICT;
CREATE INDEX torn_messages_until ON torn_messages (until) WHERE until IS NOT NULL;
CREATE TABLE torn_work (
    row      INTEGER PRIMARY KEY,
    key      INTEGER,
    attempts INTEGER NOT NULL,
    until    INTEGER
) STRICT;
CREATE INDEX torn_work_until ON torn_work (until) WHERE until IS NOT NULL;
-- the row of `messages` or `work`, if it could not be removed when it was set aside
ALTER TABLE set_aside ADD COLUMN torn INTEGER;
