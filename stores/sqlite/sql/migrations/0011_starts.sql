-- Starts of nodes have ids, so that a registration that comes late or twice is known.

-- The id of the start with the number `start_number`, and when its process started, in milliseconds. They
-- count while that is the newest start, because builds without these columns leave them as they are.
ALTER TABLE nodes ADD COLUMN start_number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN start_id TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN started_at INTEGER NOT NULL DEFAULT 0;
