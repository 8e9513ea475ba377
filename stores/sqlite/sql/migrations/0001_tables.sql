-- The tables of the store.
--
-- What a fetch looks for is found by equality: rows move between states (ready, delayed, leased) and a partial
-- index holds the rows of one state. What becomes runnable by time alone is found by the `due` indexes, which a
-- fetch sweeps in bounded batches (S20). Histories are appended in order of arrival and found by index.

-- Numbers that are never given twice: runs, epochs, tokens, orders, changes.
CREATE TABLE counter (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    value INTEGER NOT NULL
) STRICT;
INSERT INTO counter (id, value) VALUES (1, 0);

-- One row for every id that anything refers to. `name` is NULL until a commit says whose it is.
CREATE TABLE instances (
    key                   INTEGER PRIMARY KEY,
    instance              TEXT NOT NULL UNIQUE,
    name                  TEXT,
    version               TEXT,
    parent                TEXT,
    current_execution     INTEGER NOT NULL DEFAULT 1,
    custom_status         TEXT,
    custom_status_version INTEGER NOT NULL DEFAULT 0,
    created_at            INTEGER NOT NULL DEFAULT 0,
    updated_at            INTEGER NOT NULL DEFAULT 0,
    ord                   INTEGER NOT NULL DEFAULT 0,
    change                INTEGER NOT NULL DEFAULT 0,
    -- 0: nothing to do, 1: ready, 2: leased
    turn                  INTEGER NOT NULL DEFAULT 0,
    -- the oldest ready message
    head                  INTEGER,
    token                 TEXT,
    locked_until          INTEGER,
    -- the engine version that the current execution is pinned to; 0 for none
    pin                   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX instances_ready ON instances (pin, head) WHERE turn = 1;
CREATE INDEX instances_leased ON instances (locked_until) WHERE turn = 2;
CREATE UNIQUE INDEX instances_token ON instances (token) WHERE token IS NOT NULL;
CREATE INDEX instances_parent ON instances (parent) WHERE parent IS NOT NULL;
CREATE INDEX instances_order ON instances (ord) WHERE name IS NOT NULL;

-- The engine versions that executions are pinned to: few, so that a fetch can look for each.
CREATE TABLE pins (
    id      INTEGER PRIMARY KEY,
    version TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE executions (
    key          INTEGER NOT NULL,
    execution    INTEGER NOT NULL,
    run          INTEGER NOT NULL,
    status       TEXT NOT NULL,
    output       TEXT,
    failure      TEXT,
    pinned       TEXT,
    started_at   INTEGER NOT NULL,
    completed_at INTEGER,
    PRIMARY KEY (key, execution)
) STRICT, WITHOUT ROWID;

CREATE TABLE history (
    seq       INTEGER PRIMARY KEY,
    key       INTEGER NOT NULL,
    execution INTEGER NOT NULL,
    event_id  INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    event     TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX history_events ON history (key, execution, event_id);

-- layer 0: what earlier executions left; layer 1: what the current one has changed. A NULL value is cleared.
CREATE TABLE kv (
    key     INTEGER NOT NULL,
    layer   INTEGER NOT NULL,
    name    TEXT NOT NULL,
    value   TEXT,
    updated INTEGER NOT NULL,
    PRIMARY KEY (key, layer, name)
) STRICT, WITHOUT ROWID;

-- state 0: delayed, 1: ready. A leased message is a ready one whose instance is leased and whose token is that
-- lease's.
CREATE TABLE messages (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    key         INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    visible_at  INTEGER NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    token       TEXT,
    -- 1 for a start or continue-as-new
    starts      INTEGER NOT NULL,
    item        TEXT NOT NULL,
    traceparent TEXT
) STRICT;
CREATE INDEX messages_ready ON messages (key, seq) WHERE state = 1;
CREATE INDEX messages_due ON messages (visible_at) WHERE state = 0;
CREATE INDEX messages_delayed ON messages (key) WHERE state = 0;
CREATE INDEX messages_starts ON messages (key, state) WHERE starts = 1;

-- state 0: delayed, 1: ready, 2: leased. `tag` is '' for none and begins with ':' otherwise.
CREATE TABLE work (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    key          INTEGER NOT NULL,
    execution    INTEGER NOT NULL,
    activity     INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    tag          TEXT NOT NULL,
    session      INTEGER,
    visible_at   INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    token        TEXT,
    locked_until INTEGER,
    -- since when it could have been taken
    since        INTEGER NOT NULL,
    -- 1 while it waits to be read again after it could not be
    unreadable   INTEGER NOT NULL DEFAULT 0,
    -- the attachment that the holder had
    epoch        INTEGER,
    worker       TEXT,
    item         TEXT NOT NULL,
    traceparent  TEXT
) STRICT;
CREATE INDEX work_free ON work (tag, seq) WHERE state = 1 AND session IS NULL;
CREATE INDEX work_free_any ON work (seq) WHERE state = 1 AND session IS NULL;
CREATE INDEX work_due ON work (visible_at) WHERE state = 0;
CREATE INDEX work_leased ON work (locked_until) WHERE state = 2;
CREATE UNIQUE INDEX work_token ON work (token) WHERE token IS NOT NULL;
CREATE INDEX work_session ON work (session, state, tag, seq) WHERE session IS NOT NULL;
CREATE INDEX work_session_order ON work (session, seq) WHERE session IS NOT NULL;
CREATE INDEX work_identity ON work (key, execution, activity);

-- `instance` is '' for a shared session. `held` is 1 while a lease may be live; the sweep of ended leases sets it
-- to 0. `is_row` is 0 for a session that is only named by queued work.
CREATE TABLE sessions (
    id            INTEGER PRIMARY KEY,
    instance      TEXT NOT NULL,
    session_id    TEXT NOT NULL,
    is_row        INTEGER NOT NULL DEFAULT 0,
    held          INTEGER NOT NULL DEFAULT 0,
    owner         TEXT,
    incarnation   INTEGER,
    locked_until  INTEGER NOT NULL DEFAULT 0,
    last_activity INTEGER NOT NULL DEFAULT 0,
    epoch         INTEGER NOT NULL DEFAULT 0,
    idle_timeout  INTEGER,
    serial        INTEGER NOT NULL DEFAULT 0,
    UNIQUE (instance, session_id)
) STRICT;
CREATE INDEX sessions_held ON sessions (locked_until) WHERE held = 1;
CREATE INDEX sessions_owner ON sessions (owner) WHERE held = 1;

-- The oldest ready activity of each session and tag, with the owner of the session: '' for nobody,
-- else ':' and the id.
CREATE TABLE heads (
    session INTEGER NOT NULL,
    tag     TEXT NOT NULL,
    head    INTEGER NOT NULL,
    owner   TEXT NOT NULL,
    PRIMARY KEY (session, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX heads_by_tag ON heads (owner, tag, head);
CREATE INDEX heads_any ON heads (owner, head);

-- Executions that want to hear of the next attachments of a session.
CREATE TABLE watchers (
    instance   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    key        INTEGER NOT NULL,
    execution  INTEGER NOT NULL,
    has_seen   INTEGER NOT NULL,
    PRIMARY KEY (instance, session_id, key, execution)
) STRICT, WITHOUT ROWID;
CREATE INDEX watchers_of ON watchers (key, execution);

CREATE TABLE nodes (
    node        TEXT PRIMARY KEY,
    incarnation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- queue 0: messages, 1: work.
CREATE TABLE set_aside (
    id       INTEGER PRIMARY KEY,
    queue    INTEGER NOT NULL,
    instance TEXT,
    payload  TEXT NOT NULL,
    reason   TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    at       INTEGER NOT NULL
) STRICT;
