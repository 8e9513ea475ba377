-- Makes a function that differs from one of ours in its result only.
CREATE SCHEMA {name};
CREATE FUNCTION {name}.notify(p_notify TEXT, p_me TEXT) RETURNS INT LANGUAGE sql AS 'SELECT 1'
