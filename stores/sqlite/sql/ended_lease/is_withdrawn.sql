-- Tells whether the activity of a lease was withdrawn while the lease was live (S12).
SELECT EXISTS (SELECT 1 FROM ended_leases WHERE token = ?1 AND kind = 2)
