-- Lists all messages by an index alone: the place of each, its instance, its state, and when it was due.
SELECT seq, key, state, coalesce(due, visible_at) FROM messages INDEXED BY messages_order
