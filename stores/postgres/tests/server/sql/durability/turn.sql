-- Leases a turn, as the store asks for it.
SELECT kind FROM {name}.fetch_turns(NULL, 30000, 1, NULL, NULL, true)
