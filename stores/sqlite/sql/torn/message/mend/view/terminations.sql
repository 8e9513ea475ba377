-- Lists the messages that any worker can act on, by an index alone.
SELECT seq, key FROM messages INDEXED BY messages_terminations WHERE needs_code = 0
