-- The order of a batch, the lives of instances, and what is counted or deleted without a walk over all rows.

-- The moment at which a message first became due: its time of sending plus its own delay, the fire time of a
-- timer. The delay of an abandon does not change it. NULL for a row of an older build, for which `visible_at`
-- stands.
ALTER TABLE messages ADD COLUMN due INTEGER;
UPDATE messages SET due = visible_at;
CREATE INDEX messages_order ON messages (key, state, coalesce(due, visible_at));
CREATE INDEX messages_starts_order ON messages (key, state, coalesce(due, visible_at)) WHERE starts = 1;
