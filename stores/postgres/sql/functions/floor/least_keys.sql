-- Finds for each floor (see lower_floor) the lowest key of a runnable row that is not below the given key;
-- NULL if there is none.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.least_keys(
    p_turns BIGINT, p_work BIGINT, p_heads BIGINT, p_due_messages BIGINT, p_leased_turns BIGINT,
    p_due_work BIGINT,
    p_leased_work BIGINT, p_held_sessions BIGINT
) RETURNS {schema}.floors
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
DECLARE
    v_least {schema}.floors;
BEGIN
    v_least.turns := (
        SELECT min(oldest.head) FROM {schema}.pins AS p
        CROSS JOIN LATERAL (
            SELECT l.head FROM {schema}.instance_locks AS l
            WHERE l.lock_token IS NULL AND l.head IS NOT NULL AND l.pin = p.pin AND l.head >= p_turns
            ORDER BY l.head LIMIT 1
        ) AS oldest
    );
    v_least.work := least(
        (
            SELECT w.id FROM {schema}.worker_queue AS w
            WHERE w.state = 1 AND w.session_id IS NULL AND w.tag < '@' AND w.id - 0 >= p_work
            ORDER BY w.id - 0 LIMIT 1
        ),
        (
            SELECT min(oldest.id) FROM {schema}.routes AS r
            CROSS JOIN LATERAL (
                SELECT w.id FROM {schema}.worker_queue AS w
                WHERE w.state = 1 AND w.session_id IS NULL AND w.tag = r.tag AND w.id + 0 >= p_work
                ORDER BY w.id + 0 LIMIT 1
            ) AS oldest
        )
    );
    -- Step through the owners by index, with one lookup per owner.
    WITH RECURSIVE owners (owner) AS (
        (SELECT h.owner FROM {schema}.heads AS h ORDER BY h.owner, h.tag, h.head LIMIT 1)
        UNION ALL
        SELECT (
            SELECT h.owner FROM {schema}.heads AS h WHERE h.owner > o.owner ORDER BY h.owner, h.tag, h.head
                LIMIT 1
        ) FROM owners AS o WHERE o.owner IS NOT NULL
    )
    SELECT min(oldest.head) INTO v_least.heads FROM owners AS o
    CROSS JOIN LATERAL (
        (
            SELECT h.head FROM {schema}.heads AS h
            WHERE h.owner = o.owner AND h.tag < '@' AND h.head + 0 >= p_heads
            ORDER BY h.head + 0 LIMIT 1
        )
        UNION ALL
        SELECT routed.head FROM {schema}.routes AS r
        CROSS JOIN LATERAL (
            SELECT h.head FROM {schema}.heads AS h
            WHERE h.owner = o.owner AND h.tag = r.tag AND h.head >= p_heads
            ORDER BY h.head LIMIT 1
        ) AS routed
    ) AS oldest;
    v_least.due_messages := (
        SELECT q.visible_ms FROM {schema}.orchestrator_queue AS q
        WHERE q.state = 0 AND q.visible_ms >= p_due_messages ORDER BY q.visible_ms LIMIT 1
    );
    v_least.leased_turns := (
        SELECT l.locked_until FROM {schema}.instance_locks AS l
        WHERE l.lock_token IS NOT NULL AND l.locked_until >= p_leased_turns ORDER BY l.locked_until LIMIT 1
    );
    v_least.due_work := (
        SELECT w.visible_ms FROM {schema}.worker_queue AS w
        WHERE w.state = 0 AND w.visible_ms >= p_due_work ORDER BY w.visible_ms LIMIT 1
    );
    v_least.leased_work := (
        SELECT w.locked_until FROM {schema}.worker_queue AS w
        WHERE w.state = 2 AND w.locked_until >= p_leased_work ORDER BY w.locked_until LIMIT 1
    );
    v_least.held_sessions := (
        SELECT s.locked_until FROM {schema}.sessions AS s
        WHERE s.held AND s.locked_until >= p_held_sessions ORDER BY s.locked_until LIMIT 1
    );
    RETURN v_least;
END
$function$
