-- Call this after writing a row that became runnable with an old key: fetches start at the floors and would
-- not see it (S18, S20). If the key is below a floor, or below a floor that is about to be raised, it is
-- inserted into `beneath`, and fetches start at the lowest key there. It is an insert, so no transaction
-- waits for another.
-- Call it in the transaction that wrote the row, in a statement after the write. Then it sees the proposed
-- floors, or its transaction is one that the raise waits for (see tend_floors). No call is needed for a row
-- whose id was drawn from the sequence by a transaction that already had a transaction id: such an id is
-- above all floors. A transaction with an older snapshot (not `read committed`) cannot see the current
-- floors, so it inserts every key. A key of NULL does nothing.
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
