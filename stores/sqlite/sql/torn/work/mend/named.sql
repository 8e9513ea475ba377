-- Tells whether an activity names a table that was left behind.
SELECT EXISTS (SELECT 1 FROM work WHERE item LIKE ?1)
