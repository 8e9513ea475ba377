-- Inserts a row for an instance id that another row is about to refer to; it has no orchestration yet.
INSERT INTO instances (instance) VALUES (?1)
