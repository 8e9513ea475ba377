-- Reads the epoch of a session: the number of its last claim.
SELECT epoch FROM sessions WHERE id = ?1
