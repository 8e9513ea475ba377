-- Counts a look at an activity that cannot be read, and holds it back until ?3. Returns how often it was
-- looked at. Does nothing if it is held back already, by another call that looked at the same time (?4), or
-- given up.
INSERT INTO torn_work (row, key, attempts, until) VALUES (?1, ?2, 1, ?3)
ON CONFLICT (row) DO UPDATE SET attempts = attempts + 1, until = excluded.until
WHERE until <= ?4
RETURNING attempts
