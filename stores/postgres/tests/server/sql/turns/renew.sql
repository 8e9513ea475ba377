-- Extends a lease.
SELECT * FROM {name}.renew_turns('{{token}}', '{30000}', NULL)
