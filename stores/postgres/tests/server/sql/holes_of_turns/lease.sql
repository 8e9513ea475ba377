-- Leases an instance with so many bytes.
SELECT items FROM {name}.lease_turns('{{instance}}', 9000000000000, 1000000, {bytes})
