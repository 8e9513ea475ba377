-- Removes a schema.
DROP SCHEMA {name} CASCADE
