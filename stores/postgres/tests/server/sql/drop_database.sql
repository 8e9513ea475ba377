-- Removes a database, if there is one.
DROP DATABASE IF EXISTS {name}
