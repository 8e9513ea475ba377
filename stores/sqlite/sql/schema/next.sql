-- Returns a number that was never given before (S2, S13).
UPDATE counter SET value = value + 1 WHERE id = 1 RETURNING value
