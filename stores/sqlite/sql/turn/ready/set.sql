-- Ends the lease of an instance, if it has one. With a ready message ?2 the instance becomes ready, else
-- idle. A ready instance waits since ?3, or since an earlier time at which it was ready or its lease ended.
UPDATE instances
SET turn = iif(?2 IS NULL, 0, 1), head = ?2, token = NULL, locked_until = NULL,
    since = CASE
        WHEN ?2 IS NULL THEN 0
        WHEN turn = 2 THEN min(locked_until, ?3)
        WHEN since > 0 THEN min(since, ?3)
        ELSE ?3
    END
WHERE key = ?1
