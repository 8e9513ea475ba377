-- Takes back reports of workers that were later than the time ?1 to which the file is set.
UPDATE workers SET last_seen = ?1 WHERE last_seen > ?1
