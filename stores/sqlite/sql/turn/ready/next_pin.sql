-- Finds the lowest number of an engine version, or negative number of a route, above ?1 that a ready instance
-- is pinned or routed to: one index lookup. Called again and again, it lists those of all ready instances.
SELECT min(pin) FROM instances WHERE turn = 1 AND pin > ?1
