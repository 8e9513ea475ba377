-- Finds the activity that a token holds, and until when.
SELECT seq, locked_until FROM work WHERE token = ?1
