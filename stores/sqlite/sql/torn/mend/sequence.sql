-- Lets a new table of a queue go on counting where the one that is left behind ended.
INSERT INTO sqlite_sequence (name, seq) SELECT ?1, seq FROM sqlite_sequence WHERE name = ?2
