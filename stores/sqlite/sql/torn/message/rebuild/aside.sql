-- Lets the messages that were set aside where they are, torn, come back as rows of the rebuilt queue, with
-- the text ?1. What else is known of them is read by indexes alone.
UPDATE set_aside
SET payload = ?1,
    torn = NULL,
    instance = coalesce(instance, (
        SELECT instances.instance FROM messages INDEXED BY messages_order
        JOIN instances ON instances.key = messages.key
        WHERE messages.seq = set_aside.torn
    )),
    starts = EXISTS (
        SELECT 1 FROM messages INDEXED BY messages_starts WHERE starts = 1 AND seq = set_aside.torn
    )
WHERE queue = 0 AND torn IS NOT NULL
