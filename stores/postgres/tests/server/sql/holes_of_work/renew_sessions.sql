-- Extends the leases of sessions, of an owner that has no room.
SELECT session || ' ' || outcome FROM {name}.renew_sessions('A', NULL, 60000, 5000, 5000, '{""}', true, {now})
