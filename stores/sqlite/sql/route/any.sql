-- Tells whether anything is routed.
SELECT EXISTS (SELECT 1 FROM routes WHERE kind IN (0, 1, 2))
