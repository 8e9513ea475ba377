-- Reads which activity of its instance a row is.
SELECT execution, activity FROM work WHERE seq = ?1
