-- Counts a look at an activity that cannot be read, and holds it back until ?3. Returns how often it was
-- looked at.
INSERT INTO torn_work (row, key, attempts, until) VALUES (?1, ?2, 1, ?3)
ON CONFLICT (row) DO UPDATE SET attempts = attempts + 1, until = excluded.until
RETURNING attempts
