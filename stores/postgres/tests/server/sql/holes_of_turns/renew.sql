-- Extends the lease.
SELECT code FROM {name}.renew_turns('{{token}}', '{600000}', NULL)
