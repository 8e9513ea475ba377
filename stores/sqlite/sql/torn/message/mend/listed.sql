-- Lists the messages that could not be read, or not be removed.
SELECT row, attempts, until FROM torn_messages
