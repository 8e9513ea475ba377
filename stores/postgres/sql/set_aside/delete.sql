-- Deletes a row that was set aside as unreadable (S15). Locks: the row.
DELETE FROM {schema}.set_aside WHERE id = $1 RETURNING id
