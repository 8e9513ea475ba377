-- Reads the tag that the activities of a route have.
SELECT tag FROM routes WHERE id = ?1
