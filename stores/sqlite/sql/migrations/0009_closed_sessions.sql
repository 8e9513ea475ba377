-- Sessions that were closed while their leases lasted: no other process claims such a session before its
-- former owner has detached it, should it be opened again.

-- The epoch of the claim that was closed, if the lease in the row is that of the former owner. It counts
-- while `uses` is 0, because builds without this column claim the session and leave it as it is.
ALTER TABLE sessions ADD COLUMN closed_epoch INTEGER;
