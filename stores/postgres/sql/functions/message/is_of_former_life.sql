-- Tells whether a message that carries the life of a parent was made for a former life of it (S17): the
-- instance of that id has another life, or none yet. The start of a child is not if no instance of that id
-- exists at all (no row, no queued start, no history): a child goes on without its parent (F13).
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.is_of_former_life(p_parent TEXT, p_life BIGINT, p_starts BOOLEAN)
RETURNS BOOLEAN
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
DECLARE
    v_life BIGINT := (SELECT i.ord FROM {schema}.instances AS i WHERE i.instance_id = p_parent);
BEGIN
    IF v_life IS NOT NULL OR NOT p_starts THEN
        RETURN v_life IS DISTINCT FROM p_life;
    END IF;
    RETURN coalesce(
        (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = p_parent AND q.starts LIMIT 1),
        (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = p_parent LIMIT 1)
    ) IS NOT NULL;
END
$function$
