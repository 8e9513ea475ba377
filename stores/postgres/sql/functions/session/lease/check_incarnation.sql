-- Returns the newest incarnation (start number) of a node if it is newer than the given one, else NULL (S13).
-- A caller without an incarnation (NULL) is never outdated.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.check_incarnation(p_owner TEXT, p_incarnation BIGINT) RETURNS BIGINT
LANGUAGE sql STABLE
AS $function$
    SELECT n.incarnation FROM {schema}.nodes AS n WHERE n.node_id = p_owner AND p_incarnation < n.incarnation
$function$
