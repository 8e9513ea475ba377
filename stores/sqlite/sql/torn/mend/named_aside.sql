-- Tells whether a text that was set aside names a table that was left behind.
SELECT EXISTS (SELECT 1 FROM set_aside WHERE payload LIKE ?1)
