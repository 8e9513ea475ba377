-- Marks a message as leased and counts the delivery (S5).
UPDATE messages SET token = ?2, attempts = attempts + 1 WHERE seq = ?1
