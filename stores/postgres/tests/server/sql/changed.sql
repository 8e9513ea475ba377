-- Says that the first migration had another text.
UPDATE {name}.steadfast_migrations SET hash = '?' WHERE version = 1
