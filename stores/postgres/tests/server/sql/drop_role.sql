-- Removes a role with all that it has in this database.
DROP OWNED BY {name} CASCADE;
DROP ROLE {name}
