-- Takes one delivery off the activity of a lease that has expired, if it is still there (S5).
UPDATE work SET attempts = max(attempts - 1, 0)
WHERE seq IN (
    SELECT row FROM ended_leases WHERE token = ?1 AND kind = 1 AND row NOT IN (SELECT row FROM torn_work)
)
