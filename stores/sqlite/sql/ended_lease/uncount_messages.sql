-- Takes one delivery off the messages of a lease that has expired, if they are still there (S5).
UPDATE messages SET attempts = max(attempts - 1, 0)
WHERE seq IN (
    SELECT row FROM ended_leases WHERE token = ?1 AND kind = 0 AND row NOT IN (SELECT row FROM torn_messages)
)
