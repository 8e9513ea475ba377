-- Removes all heads of a session.
DELETE FROM heads WHERE session = ?1
