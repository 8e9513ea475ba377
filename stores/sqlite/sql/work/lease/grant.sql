-- Leases an activity and counts the delivery (S5).
UPDATE work SET state = 2, token = ?2, locked_until = ?3, epoch = ?4, worker = ?5,
    attempts = attempts + 1 WHERE seq = ?1
