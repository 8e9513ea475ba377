-- Finds the last report of the listed worker that is silent for the longest, if anything is routed: when that
-- worker counts as gone, others may be given what is left to it.
SELECT min(last_seen) FROM workers WHERE is_listed = 1
    AND EXISTS (SELECT 1 FROM routes WHERE kind IN (0, 1, 2))
