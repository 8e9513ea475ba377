-- Makes an activity ready and clears its lease. It waits since it became visible or its lease ended,
-- whichever is later.
UPDATE work
SET state = 1, since = max(visible_at, coalesce(locked_until, 0)), unreadable = 0, token = NULL,
    locked_until = NULL, epoch = NULL
WHERE seq = ?1
