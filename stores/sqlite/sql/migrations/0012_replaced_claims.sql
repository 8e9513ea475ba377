-- Closed claims of reopened sessions that their owner has replaced: if the fetch that did it is dropped, other
-- processes go on waiting for the closed claim.

-- The closed claim that the claim with the epoch `replaced_by` has replaced: its epoch, the incarnation of its
-- owner and the end of its lease. It counts while `replaced_by` is the epoch of the session, because builds
-- without these columns claim the session and leave them as they are. Both claims are of the same node.
ALTER TABLE sessions ADD COLUMN replaced_by INTEGER;
ALTER TABLE sessions ADD COLUMN replaced_epoch INTEGER;
ALTER TABLE sessions ADD COLUMN replaced_incarnation INTEGER;
ALTER TABLE sessions ADD COLUMN replaced_until INTEGER;
