-- Takes a message off the list, because it can be read or is gone.
DELETE FROM torn_messages WHERE row = ?1
