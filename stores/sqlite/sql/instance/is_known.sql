-- Tells whether an instance has a row with an orchestration, or any history.
SELECT EXISTS (SELECT 1 FROM instances WHERE key = ?1 AND name IS NOT NULL)
    OR EXISTS (SELECT 1 FROM history WHERE key = ?1)
