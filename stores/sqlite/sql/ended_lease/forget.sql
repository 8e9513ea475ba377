-- Removes what is remembered of a lease that has expired.
DELETE FROM ended_leases WHERE token = ?1 AND kind < 2
