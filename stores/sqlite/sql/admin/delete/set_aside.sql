-- Removes the rows of an instance that were set aside.
DELETE FROM set_aside WHERE instance = ?1
