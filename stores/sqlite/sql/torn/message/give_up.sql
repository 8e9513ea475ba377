-- Leaves a message that cannot be read where it is, for good.
UPDATE torn_messages SET until = NULL WHERE row = ?1
