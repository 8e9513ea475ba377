-- The trails of sessions: which process owned a session, from when to when, and why that changed.

-- A claim has one row for its begin and one for its end (`is_end`). `change` says in a word what happened: 'claimed',
-- or how the claim ended. `at` is the time of the file. `id` rises with every change of any session, so old rows are
-- found at its low end.
CREATE TABLE session_trail (
    id          INTEGER PRIMARY KEY,
    instance    TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    epoch       INTEGER NOT NULL,
    is_end      INTEGER NOT NULL,
    owner       TEXT NOT NULL,
    incarnation INTEGER,
    at          INTEGER NOT NULL,
    change      TEXT NOT NULL,
    UNIQUE (instance, session_id, epoch, is_end)
) STRICT;
