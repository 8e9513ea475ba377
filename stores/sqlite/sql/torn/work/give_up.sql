-- Leaves an activity that cannot be read where it is, for good.
UPDATE torn_work SET until = NULL WHERE row = ?1
