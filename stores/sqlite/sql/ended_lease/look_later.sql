-- Lets the clean-up look at an ended lease again at ?3.
UPDATE ended_leases SET look_at = ?3 WHERE token = ?1 AND row = ?2
