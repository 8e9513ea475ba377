-- Removes a row that was set aside.
DELETE FROM {schema}.set_aside WHERE id = $1 RETURNING id
