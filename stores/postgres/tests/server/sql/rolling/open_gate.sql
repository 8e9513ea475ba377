-- Lets everybody at the table.
COMMIT
