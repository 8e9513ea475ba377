-- Lets one process at a time change a schema; the lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended($1, 7245163))
