-- Lists up to p_limit instances that may be roots and that ended up to a time (Unix milliseconds), in no
-- order. They are found by the time of their end; what ended later is not looked at. Instances that continued
-- as new and have not gone on are among them, whenever that was. The caller looks at each again.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.early_roots(p_ended_until BIGINT, p_limit BIGINT)
RETURNS TABLE(instance_id TEXT)
LANGUAGE sql STABLE AS $function$
    SELECT found.instance_id
    FROM (
        SELECT i.instance_id FROM {schema}.instances AS i
        WHERE (i.parent_instance_id IS NULL OR i.is_orphan) AND i.ended_ms IS NOT NULL
          AND i.ended_ms + 0 <= p_ended_until
        UNION ALL
        SELECT i.instance_id FROM {schema}.instances AS i WHERE i.status = 'ContinuedAsNew'
    ) AS found
    LIMIT p_limit
$function$
