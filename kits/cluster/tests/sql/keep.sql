-- Adds a row, which is committed when the statement returns.
INSERT INTO "{name}".kept VALUES (7)
