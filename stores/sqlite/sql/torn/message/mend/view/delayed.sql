-- Lists the delayed messages and until when they are, by an index alone.
SELECT seq, visible_at FROM messages INDEXED BY messages_due WHERE state = 0
