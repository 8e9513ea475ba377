-- Extends the lease of the session to a moment that is over.
SELECT * FROM {name}.renew_sessions('other', NULL, 1, 900000, 900000, '{""}', false, {now} - 10)
