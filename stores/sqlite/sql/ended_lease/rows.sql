-- Lists the rows that a lease held which has expired.
SELECT row FROM ended_leases WHERE token = ?1 AND kind < 2
