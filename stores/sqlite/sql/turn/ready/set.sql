-- Frees an instance: it is ready if it has a ready message, and has nothing to do otherwise. It could have been leased
-- since ?3, or since earlier: it had ready messages before, or its lease has ended.
UPDATE instances
SET turn = iif(?2 IS NULL, 0, 1), head = ?2, token = NULL, locked_until = NULL,
    since = CASE
        WHEN ?2 IS NULL THEN 0
        WHEN turn = 2 THEN min(locked_until, ?3)
        WHEN since > 0 THEN min(since, ?3)
        ELSE ?3
    END
WHERE key = ?1
