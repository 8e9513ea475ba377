-- Leases an activity and counts the delivery (S5, S22). ?6 is now.
UPDATE work SET state = 2, token = ?2, locked_until = ?3, epoch = ?4, worker = ?5, attempts = attempts + 1,
    deliveries = deliveries + 1, first_fetched = coalesce(first_fetched, ?6)
WHERE seq = ?1
