-- Marks a message as leased, as the lease of its instance says.
UPDATE messages SET token = ?2 WHERE seq = ?1 AND token IS NOT ?2
