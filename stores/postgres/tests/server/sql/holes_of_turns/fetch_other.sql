-- Counts what a fetch finds of the other.
SELECT count(*) FROM {name}.fetch_turns(1000100, 30000, 1) AS f WHERE f.kind = 'turn' AND f.instance_id = 'other'
