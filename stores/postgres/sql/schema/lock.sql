-- Lets only one process at a time migrate a schema. Locks: an advisory lock until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended($1, 7245163))
