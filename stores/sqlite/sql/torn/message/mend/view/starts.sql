-- Lists the messages that start an execution, by an index alone.
SELECT seq, key FROM messages INDEXED BY messages_starts WHERE starts = 1
