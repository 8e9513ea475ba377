-- Makes a place to write to.
CREATE TABLE {name}.written (number BIGINT PRIMARY KEY)
