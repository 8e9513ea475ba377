-- Gives up a message where it is, because it cannot be removed.
INSERT INTO torn_messages (row, attempts, until) VALUES (?1, 0, NULL)
ON CONFLICT (row) DO UPDATE SET until = NULL
