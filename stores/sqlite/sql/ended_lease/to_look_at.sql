-- Lists ended leases that the clean-up looks at, in a bounded batch.
SELECT token, row FROM ended_leases WHERE look_at <= ?1 ORDER BY look_at LIMIT ?2
