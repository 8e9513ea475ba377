-- Refuses commits that would create a child for a former life of its parent, because an instance of the
-- parent's id was started anew: their code becomes `lost`, and the next lease of the instance settles the
-- start (S17). A child whose parent is gone goes on (F13). Returns the codes by commit.
-- p_unnamed: whether the commit creates the row of its instance.
-- Locks: none. The caller has locked the instances.
CREATE OR REPLACE FUNCTION {schema}.refuse_orphans(
    p_codes TEXT[], p_holders TEXT[], p_unnamed BOOLEAN[], p_parents TEXT[]
) RETURNS TEXT[]
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    RETURN ARRAY(
        SELECT CASE WHEN c.unnamed AND c.parent IS NOT NULL AND c.code = 'ok' AND (
            SELECT 1 FROM {schema}.instance_locks AS l
            CROSS JOIN LATERAL unnest(l.leased) AS leased (id)
            CROSS JOIN LATERAL (
                SELECT q.starts, q.parent_instance_id, q.parent_life FROM {schema}.orchestrator_queue AS q
                WHERE q.id = leased.id OFFSET 0
            ) AS q
            WHERE l.instance_id = c.holder AND q.starts AND q.parent_life IS NOT NULL
              AND q.parent_instance_id = c.parent
              AND {schema}.is_of_former_life(q.parent_instance_id, q.parent_life, q.starts)
            LIMIT 1
        ) = 1 THEN 'lost' ELSE c.code END
        FROM unnest(p_codes, p_holders, p_unnamed, p_parents)
            WITH ORDINALITY AS c (code, holder, unnamed, parent, place)
        ORDER BY c.place
    );
END
$function$
