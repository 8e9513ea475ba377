-- Makes a function in a schema as another application would.
CREATE SCHEMA {name};
CREATE FUNCTION {name}.notify(mine INT) RETURNS INT LANGUAGE sql AS 'SELECT mine'
