-- Inserts a row for an instance id that was deleted, under the key that messages to it have.
INSERT INTO instances (key, instance) VALUES (?1, ?2)
