-- Reads all of a message, and tells whether the indexes have it as it is.
SELECT key, state, visible_at, attempts, token, starts, item, traceparent, due, life, dropped, refused,
    needs_code, failure,
    EXISTS (
        SELECT 1 FROM messages AS found INDEXED BY messages_order
        WHERE found.key = messages.key AND found.state = messages.state
            AND coalesce(found.due, found.visible_at) = coalesce(messages.due, messages.visible_at)
            AND found.seq = messages.seq
    )
    AND CASE state
        WHEN 1 THEN EXISTS (
            SELECT 1 FROM messages AS found INDEXED BY messages_ready
            WHERE found.state = 1 AND found.key = messages.key AND found.seq = messages.seq
        )
        WHEN 0 THEN EXISTS (
            SELECT 1 FROM messages AS found INDEXED BY messages_due
            WHERE found.state = 0 AND found.visible_at = messages.visible_at AND found.seq = messages.seq
        )
        ELSE 0
    END
    AND (starts = 1) = EXISTS (
        SELECT 1 FROM messages AS found INDEXED BY messages_starts
        WHERE found.starts = 1 AND found.key = messages.key AND found.state = messages.state
            AND found.seq = messages.seq
    )
    AND (needs_code = 0) = EXISTS (
        SELECT 1 FROM messages AS found INDEXED BY messages_terminations
        WHERE found.needs_code = 0 AND found.key = messages.key AND found.state = messages.state
            AND found.seq = messages.seq
    )
FROM messages WHERE seq = ?1
