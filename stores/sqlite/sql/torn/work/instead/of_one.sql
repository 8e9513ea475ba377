-- Gives up an activity where it is, because it cannot be removed.
INSERT INTO torn_work (row, attempts, until) VALUES (?1, 0, NULL)
ON CONFLICT (row) DO UPDATE SET until = NULL
