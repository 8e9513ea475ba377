-- Keeps leases whose activities were withdrawn known for as much longer as the time jumps forward (S12):
-- those that are known after ?1, by ?2.
UPDATE ended_leases SET look_at = min(look_at, 9223372036854775807 - ?2) + ?2
WHERE look_at > ?1 AND kind = 2
