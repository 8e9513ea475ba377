-- Tells whether the floors are being raised.
SELECT count(cycle) FROM {name}.floors
