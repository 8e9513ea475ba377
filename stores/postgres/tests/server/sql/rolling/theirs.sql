-- Adds a form that is not ours.
CREATE FUNCTION {name}.doubled(theirs TEXT) RETURNS TEXT LANGUAGE sql AS 'SELECT theirs || theirs'
