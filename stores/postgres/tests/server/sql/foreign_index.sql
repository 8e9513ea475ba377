-- Makes a table whose index has the name of one of ours.
CREATE SCHEMA {name};
CREATE TABLE {name}.theirs (mine INT);
CREATE INDEX worker_queue_token ON {name}.theirs (mine)
