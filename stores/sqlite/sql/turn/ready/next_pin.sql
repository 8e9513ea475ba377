-- Finds the lowest number of an engine version above ?1 that a ready instance is pinned to: one index lookup.
-- Called again and again, it lists the versions of all ready instances.
SELECT min(pin) FROM instances WHERE turn = 1 AND pin > ?1
