-- Removes a row that was set aside.
DELETE FROM set_aside WHERE id = ?1
