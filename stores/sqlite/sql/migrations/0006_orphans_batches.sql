-- What retention may delete, and which messages a lease holds, both found without a look at other rows.

-- 1 for a child whose parent is gone: retention deletes it like a root. Triggers keep it, so that what an older
-- build deletes and begins is seen too.
ALTER TABLE instances ADD COLUMN orphan INTEGER NOT NULL DEFAULT 0;
UPDATE instances SET orphan = 1
WHERE parent IS NOT NULL AND name IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM instances AS parents WHERE parents.instance = instances.parent AND parents.name IS NOT NULL
);
CREATE TRIGGER instance_gone AFTER DELETE ON instances WHEN old.name IS NOT NULL BEGIN
    UPDATE instances SET orphan = 1 WHERE parent = old.instance AND orphan = 0;
END;
CREATE TRIGGER instance_named AFTER UPDATE OF name ON instances
WHEN old.name IS NULL AND new.name IS NOT NULL BEGIN
    UPDATE instances SET orphan = 0 WHERE parent = new.instance AND orphan = 1;
    UPDATE instances SET orphan = 1
    WHERE key = new.key AND parent IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM instances AS parents WHERE parents.instance = new.parent AND parents.name IS NOT NULL
    );
END;
DROP INDEX instances_ended_children;
CREATE INDEX instances_ended_orphans ON instances (ended_at) WHERE ended_at IS NOT NULL AND orphan = 1;

-- The last lease of an instance: its token, and the places of the messages that it holds, each after a space.
-- It tells what a lease holds when the page of a message is torn. A build that does not write it leaves the
-- one of an earlier lease, with the token of that one.
ALTER TABLE instances ADD COLUMN batch TEXT;
