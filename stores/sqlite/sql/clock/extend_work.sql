-- Extends the live leases of activities by as much as the time jumps forward: those that end after ?1, by ?2.
UPDATE work SET locked_until = min(locked_until, 9223372036854775807 - ?2) + ?2
WHERE state = 2 AND locked_until > ?1 AND seq NOT IN (SELECT row FROM torn_work)
