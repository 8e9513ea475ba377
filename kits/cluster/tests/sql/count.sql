-- Counts the rows that were kept.
SELECT count(*) FROM "{name}".kept
