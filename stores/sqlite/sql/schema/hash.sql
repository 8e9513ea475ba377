-- Finds the hash of a migration that was applied.
SELECT hash FROM steadfast_migrations WHERE version = ?1
