-- Remembers the expired leases of instances with the messages that they carried, so that their holders can
-- excuse them (S5).
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.remember_turns(p_instances TEXT[], p_now BIGINT) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    INSERT INTO {schema}.ended_leases (token, reason, instance_id, messages, until_ms)
    SELECT l.lock_token, 0, i.id, l.leased, p_now + 3600000
    FROM unnest(p_instances) AS i (id)
    CROSS JOIN LATERAL (
        SELECT l.lock_token, l.leased FROM {schema}.instance_locks AS l
        WHERE l.instance_id = i.id AND l.lock_token IS NOT NULL AND l.leased IS NOT NULL
        OFFSET 0
    ) AS l
    ON CONFLICT DO NOTHING;
END
$function$
