-- Makes things of others in a schema, with names of their own or parameters of their own.
CREATE SCHEMA {name};
CREATE TABLE {name}.orders (mine INT);
CREATE FUNCTION {name}.total(mine INT) RETURNS INT LANGUAGE sql AS 'SELECT mine';
CREATE FUNCTION {name}.notify(mine INT) RETURNS INT LANGUAGE sql AS 'SELECT mine'
