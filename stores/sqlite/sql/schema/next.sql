-- Draws the next number of the database-wide counter. No number is drawn twice (S2, S13).
UPDATE counter SET value = value + 1 WHERE id = 1 RETURNING value
