-- Closed claims of reopened sessions that their owner has replaced: if the fetch that did it is dropped, other
-- processes go on waiting for the closed claim.

-- The epoch of the claim that has replaced the closed claim; NULL if the session was not opened again. Such a
-- row counts while that claim is the last one of its session, and only for taking that claim back.
ALTER TABLE {schema}.closed_sessions ADD COLUMN replaced_by BIGINT;
