-- Holds an activity that cannot be read back for as long as its lease is renewed, until ?2.
UPDATE torn_work SET until = max(until, ?2) WHERE row = ?1 AND until IS NOT NULL
