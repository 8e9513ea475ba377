-- Notes that a key has come to count, if a look might begin above it (S18, S20): it is named beneath the floors, which nobody has
-- to wait for. To be called after the key was written, by the transaction that did, in a statement of its own: then it sees the
-- next floors, or is one of those that the raise of them waits for. An id that was drawn after its transaction began to write is
-- above all floors. A transaction that sees no more than there was at its beginning names every key. NULL is no key.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.lower_floor(p_kind TEXT, p_key BIGINT) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    IF (
        SELECT p_key IS NOT NULL AND (p_key < CASE p_kind
            WHEN 'turns' THEN greatest(f.turns, f.next_turns)
            WHEN 'work' THEN greatest(f.work, f.next_work)
            WHEN 'heads' THEN greatest(f.heads, f.next_heads)
            WHEN 'due_messages' THEN greatest(f.due_messages, f.next_due_messages)
            WHEN 'leased_turns' THEN greatest(f.leased_turns, f.next_leased_turns)
            WHEN 'due_work' THEN greatest(f.due_work, f.next_due_work)
            WHEN 'leased_work' THEN greatest(f.leased_work, f.next_leased_work)
            WHEN 'held_sessions' THEN greatest(f.held_sessions, f.next_held_sessions)
        END OR current_setting('transaction_isolation') <> 'read committed')
        FROM {schema}.floors AS f
    ) THEN
        INSERT INTO {schema}.beneath (kind, key) VALUES (p_kind, p_key);
    END IF;
END
$function$
