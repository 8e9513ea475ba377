-- Makes a row for an id that something refers to.
INSERT INTO instances (instance) VALUES (?1)
