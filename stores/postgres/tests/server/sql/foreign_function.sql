-- Makes a function in a schema as another application would, with the name and the parameters of one of ours.
CREATE SCHEMA {name};
CREATE FUNCTION {name}.notify(p_notify TEXT, p_me TEXT) RETURNS void LANGUAGE sql AS ''
