-- Fetches when something is due, which reads the floors twice.
SELECT * FROM {name}.fetch_turns(1000002, 30000, 1)
