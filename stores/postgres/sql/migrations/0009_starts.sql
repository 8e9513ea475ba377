-- Starts of nodes have ids, so that a registration that comes late or twice is known.

-- The id of the newest start, and when its process started, in milliseconds.
ALTER TABLE {schema}.nodes ADD COLUMN start_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE {schema}.nodes ADD COLUMN started_ms BIGINT NOT NULL DEFAULT 0;
