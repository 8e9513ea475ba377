-- Marks a message as leased and counts the attempt (S5).
UPDATE messages SET token = ?2, attempts = attempts + 1 WHERE seq = ?1
