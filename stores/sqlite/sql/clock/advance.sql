-- Counts a sleep of the machine in the time of the file.
UPDATE clock SET store_ms = ?1, slept_ns = ?2, noted_ms = ?3 WHERE id = 1
