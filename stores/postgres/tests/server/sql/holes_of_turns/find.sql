-- Counts what a fetch finds of the instance that was started before all others.
SELECT count(*) FROM {name}.fetch_turns(1000010, 30000, 1) AS f WHERE f.kind = 'turn' AND f.instance_id = 'old'
