-- Counts what was written.
SELECT count(*) FROM {name}.written
