-- Counts activities that no live lease holds, future ones included.
SELECT count(*) FROM work WHERE NOT (state = 2 AND locked_until > ?1)
