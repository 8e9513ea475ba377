-- Removes the oldest claims from the trail of a session, so that at most ?3 entries are left.
DELETE FROM session_trail
WHERE instance = ?1 AND session_id = ?2 AND epoch <= (
    SELECT epoch FROM session_trail
    WHERE instance = ?1 AND session_id = ?2
    ORDER BY epoch DESC, is_end DESC LIMIT 1 OFFSET ?3
)
