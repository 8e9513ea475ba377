-- Reads what a worker said of itself in its last report.
SELECT takes_unlisted, is_listed, is_stopped, accepts, handlers FROM workers WHERE id = ?1
