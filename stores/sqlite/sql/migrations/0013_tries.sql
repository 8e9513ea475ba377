-- Tries: the terms of calls, how often their activities were delivered and tried, and how one failed (S22).

-- The key and the policy of the call as JSON; NULL for work that a build without these columns may run too.
--
-- Work with terms stands where such a build does not look. Without a session it has 0 in the place of its
-- session, which is the number of none; on a session it has '>+' in front of its tag, and '+' in front of the
-- owner of its head, whichever build writes the head. Routed, it stands where all routed work does, and its
-- route is of kind 2.
ALTER TABLE work ADD COLUMN call TEXT;
-- how often it was leased
ALTER TABLE work ADD COLUMN deliveries INTEGER NOT NULL DEFAULT 0;
-- how many tries have ended, the error of the last one, and when the activity was first leased
ALTER TABLE work ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE work ADD COLUMN last_error TEXT;
ALTER TABLE work ADD COLUMN first_fetched INTEGER;

-- `IS`, not `=`: a statement that is given the number of a session would be prepared anew for each number.
CREATE INDEX work_called_any ON work (seq) WHERE state = 1 AND session IS 0;
CREATE INDEX work_called_since ON work (since) WHERE state = 1 AND session IS 0;

-- A build that does not count the delivery does not know the terms, so it is not given the lease.
CREATE TRIGGER work_with_terms BEFORE UPDATE OF token ON work
WHEN NEW.token IS NOT NULL AND OLD.call IS NOT NULL AND NEW.deliveries = OLD.deliveries BEGIN
    SELECT RAISE(ABORT, 'work with terms is for builds that know them');
END;

DROP TRIGGER heads_routed;
CREATE TRIGGER heads_routed AFTER INSERT ON heads
WHEN NEW.tag >= '>' AND substr(NEW.owner, 1, 1) NOT IN ('>', '+') BEGIN
    UPDATE heads SET owner = iif(substr(NEW.tag, 1, 2) = '>+', '+', '>') || NEW.owner
    WHERE session = NEW.session AND tag = NEW.tag;
END;
DROP TRIGGER heads_owned;
CREATE TRIGGER heads_owned AFTER UPDATE OF owner ON heads
WHEN NEW.tag >= '>' AND substr(NEW.owner, 1, 1) NOT IN ('>', '+') BEGIN
    UPDATE heads SET owner = iif(substr(NEW.tag, 1, 2) = '>+', '+', '>') || NEW.owner
    WHERE session = NEW.session AND tag = NEW.tag;
END;

-- How an activity failed, beside the error in the message, as JSON.
ALTER TABLE messages ADD COLUMN failure TEXT;

-- What else a row had that was set aside.
ALTER TABLE set_aside ADD COLUMN failure TEXT;
ALTER TABLE set_aside ADD COLUMN call TEXT;
ALTER TABLE set_aside ADD COLUMN deliveries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE set_aside ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE set_aside ADD COLUMN last_error TEXT;
ALTER TABLE set_aside ADD COLUMN first_fetched INTEGER;

-- The leases of an activity that have expired are forgotten when a try of it ends.
CREATE INDEX ended_leases_work ON ended_leases (row) WHERE kind = 1;
