-- Claims of sessions that were released: their leases did not expire, whatever their trails still tell.

-- The epoch of the last claim that was released before its lease expired. Of the claims that have ended by now
-- it is not known here how they did: they count as released, so that nothing more is told of their ends.
ALTER TABLE sessions ADD COLUMN released_epoch INTEGER;
UPDATE sessions SET released_epoch = epoch WHERE epoch > 0 AND held = 0;
