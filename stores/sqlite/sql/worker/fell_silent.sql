-- Marks a worker whose handlers were removed from the listed ones.
UPDATE workers SET is_listed = 0 WHERE id = ?1
