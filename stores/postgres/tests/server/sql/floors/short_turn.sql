-- Leases the instance for a moment that is over.
SELECT * FROM {name}.fetch_turns({now} - 10, 1, 1)
