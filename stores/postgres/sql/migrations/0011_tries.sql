-- Tries: the terms of a call beside its work, what is known of its tries, and the failure beside a
-- completion.

-- `call`: the key and the policy of the call, as JSON. NULL for bare work, which was queued without them:
-- only bare work is given to builds that do not know terms. `deliveries`: how often the work was leased;
-- `tries`: how many tries have ended; `last_error`: the error of the last one; `first_fetched`: when the work
-- was first leased. Of work that older builds have leased, only the deliveries that count are known.
ALTER TABLE {schema}.worker_queue
    ADD COLUMN call          TEXT,
    ADD COLUMN deliveries    INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN tries         INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN last_error    TEXT,
    ADD COLUMN first_fetched BIGINT;
UPDATE {schema}.worker_queue SET deliveries = attempt_count WHERE attempt_count > 0;

-- Bare work by age, for builds that do not know terms. The expression is one that no other index has.
CREATE INDEX worker_queue_bare ON {schema}.worker_queue (tag, (0 + id))
    WHERE state = 1 AND session_id IS NULL AND call IS NULL;
CREATE INDEX worker_queue_bare_plain ON {schema}.worker_queue ((0 + id))
    WHERE state = 1 AND session_id IS NULL AND call IS NULL AND tag < '@';
CREATE INDEX worker_queue_bare_session ON {schema}.worker_queue (session_id, session_scope, tag, (0 + id))
    WHERE state = 1 AND session_id IS NOT NULL AND call IS NULL;

-- `bare_head`: the oldest ready bare work of the session and tag; of a serial session the first in line, if
-- it is bare. NULL if there is none.
ALTER TABLE {schema}.heads ADD COLUMN bare_head BIGINT;
UPDATE {schema}.heads SET bare_head = head;
CREATE INDEX heads_bare_by_tag ON {schema}.heads (owner, tag, bare_head) WHERE bare_head IS NOT NULL;
CREATE INDEX heads_bare_plain ON {schema}.heads (owner, (bare_head + 0))
    WHERE bare_head IS NOT NULL AND tag < '@';

-- How an activity failed, beside the completion that tells it, as JSON.
ALTER TABLE {schema}.orchestrator_queue ADD COLUMN failure TEXT;

-- The same columns of rows that were set aside. NULL in rows of older functions.
ALTER TABLE {schema}.set_aside
    ADD COLUMN call          TEXT,
    ADD COLUMN deliveries    INTEGER,
    ADD COLUMN tries         INTEGER,
    ADD COLUMN last_error    TEXT,
    ADD COLUMN first_fetched BIGINT,
    ADD COLUMN failure       TEXT;
