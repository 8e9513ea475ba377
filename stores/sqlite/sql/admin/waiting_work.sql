-- Counts activities that are not leased.
SELECT count(*) FROM work WHERE NOT (state = 2 AND locked_until > ?1)
