-- Inserts a row for an instance id, so that messages or work can refer to it by key. Its orchestration is not
-- known yet.
INSERT INTO instances (instance) VALUES (?1)
