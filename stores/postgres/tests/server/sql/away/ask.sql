-- Asks for an answer.
SELECT 1
