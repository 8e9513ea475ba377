-- Removes the trails of the sessions that a deleted instance owned.
DELETE FROM session_trail WHERE instance = ?1 AND instance <> ''
