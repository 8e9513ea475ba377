-- Removes what is remembered of the expired leases of an activity: their try has ended (S22).
DELETE FROM ended_leases WHERE row = ?1 AND kind = 1
