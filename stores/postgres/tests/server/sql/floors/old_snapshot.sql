-- Goes on seeing what there is now.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM {name}.instances;
