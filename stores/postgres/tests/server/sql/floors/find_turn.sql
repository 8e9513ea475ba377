-- Leases the instance for good, and tells how many were found.
SELECT count(*) FROM {name}.fetch_turns({now}, 900000000000, 1) AS f WHERE f.instance_id = 'i{run}'
