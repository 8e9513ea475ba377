-- Makes an activity ready; it waits since its time came or its lease ended.
UPDATE work
SET state = 1, since = max(visible_at, coalesce(locked_until, 0)), unreadable = 0, token = NULL,
    locked_until = NULL, epoch = NULL
WHERE seq = ?1
