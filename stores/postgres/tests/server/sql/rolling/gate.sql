-- Makes a table to wait at.
CREATE TABLE {name}.gate (one INT);
INSERT INTO {name}.gate VALUES (1)
