-- Lists the ready messages by an index alone.
SELECT seq, key FROM messages INDEXED BY messages_ready WHERE state = 1
