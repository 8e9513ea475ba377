-- Leases it.
SELECT token FROM {name}.fetch_turns(NULL, 600000, 1)
