-- Withdraws the work of a session.
DELETE FROM work WHERE session = ?1
