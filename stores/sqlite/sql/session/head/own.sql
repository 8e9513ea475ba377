-- Notes who may take the work of a session.
UPDATE heads SET owner = ?2 WHERE session = ?1
