-- Leases an instance.
SELECT token FROM {name}.fetch_turns(NULL, 30000, 1, '{5}', '{6}')
