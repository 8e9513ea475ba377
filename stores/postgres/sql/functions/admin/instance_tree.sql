-- Lists an instance and all below it, the root first, level by level, children in the order of their ids; just the id
-- itself when it is unknown.
-- An instance has one parent, so a walk down meets nothing twice but the root, which may be its own descendant.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.instance_tree(p_root TEXT)
RETURNS TABLE(instance_id TEXT)
LANGUAGE plpgsql STABLE
{planner}
AS $function$
#variable_conflict use_column
DECLARE
    v_level TEXT[] := ARRAY[p_root];
BEGIN
    WHILE cardinality(v_level) > 0 LOOP
        RETURN QUERY SELECT level.id FROM unnest(v_level) WITH ORDINALITY AS level(id, place)
            ORDER BY level.place;
        v_level := ARRAY(
            SELECT child.instance_id
            FROM unnest(v_level) WITH ORDINALITY AS level(id, place)
            JOIN {schema}.instances AS child ON child.parent_instance_id = level.id
            WHERE child.instance_id <> p_root
            ORDER BY level.place, child.instance_id
        );
    END LOOP;
END
$function$
