-- Reads the engine version of a number.
SELECT version FROM pins WHERE id = ?1
