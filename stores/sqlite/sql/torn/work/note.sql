-- Lists a leased activity that cannot be read, without a look at it that counts. It is looked at when its
-- lease ends, at ?2.
INSERT INTO torn_work (row, attempts, until) VALUES (?1, 0, ?2) ON CONFLICT DO NOTHING
