-- Lets a message that was given up be looked at again at once; ?2 is now.
UPDATE torn_messages SET attempts = 0, until = ?2 WHERE row = ?1
