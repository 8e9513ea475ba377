-- Does as a process does that migrates a schema and takes its time.
BEGIN;
SELECT pg_advisory_xact_lock(hashtextextended('{name}', 7245163))
