-- Makes a table of others in a schema.
CREATE SCHEMA {name};
CREATE TABLE {name}.orders (mine INT);
CREATE FUNCTION {name}.total(mine INT) RETURNS INT LANGUAGE sql AS 'SELECT mine'
