-- Changes nothing.
SELECT 1
