-- Notes a time that the file has reached.
UPDATE clock SET noted_ms = ?1 WHERE id = 1 AND noted_ms < ?1
