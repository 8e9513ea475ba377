-- Tells whether any activity is ready.
SELECT EXISTS (SELECT 1 FROM work WHERE state = 1 AND session IS NULL) OR EXISTS (SELECT 1 FROM heads)
