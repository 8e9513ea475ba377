-- Gives a lease back for some time.
SELECT * FROM {name}.abandon_turns('{{token}}', '{60000}', '{false}', NULL)
