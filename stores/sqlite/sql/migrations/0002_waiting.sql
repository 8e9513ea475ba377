-- Since when the oldest runnable things wait, found by one look at an index each.

-- since when a ready instance could have been leased; 0 for one without ready messages
ALTER TABLE instances ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
UPDATE instances
SET since = coalesce((SELECT visible_at FROM messages WHERE messages.seq = instances.head), 0)
WHERE turn = 1;
CREATE INDEX instances_since ON instances (since) WHERE turn = 1;

CREATE INDEX work_since ON work (since) WHERE state = 1 AND session IS NULL;
CREATE INDEX work_session_since ON work (session, tag, since) WHERE state = 1 AND session IS NOT NULL;

-- since when an activity of the session and tag could have been taken
ALTER TABLE heads ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
UPDATE heads SET since = coalesce((SELECT work.since FROM work WHERE work.seq = heads.head), 0);
CREATE INDEX heads_since ON heads (since);

-- The longest lease that was ever granted here, in milliseconds: one that ends later than now plus that was granted by a
-- clock that has been set back since.
ALTER TABLE counter ADD COLUMN longest_lease INTEGER NOT NULL DEFAULT 0;
