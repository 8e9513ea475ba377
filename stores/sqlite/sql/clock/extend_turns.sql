-- Extends the live leases of instances by as much as the time jumps forward: those that end after ?1, by ?2.
UPDATE instances SET locked_until = min(locked_until, 9223372036854775807 - ?2) + ?2
WHERE turn = 2 AND locked_until > ?1
