-- Leases an instance that is pinned to nothing.
SELECT * FROM {name}.fetch_turns(NULL, 30000, 1, '{5}', '{6}')
