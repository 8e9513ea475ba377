-- Gives a number that was never given before.
UPDATE counter SET value = value + 1 WHERE id = 1 RETURNING value
