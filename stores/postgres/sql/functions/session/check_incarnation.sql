-- Returns the newest start of a node if that is not the one that asks, and NULL otherwise (S13). Who does not know its
-- incarnation is judged by id alone.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.check_incarnation(p_owner TEXT, p_incarnation BIGINT) RETURNS BIGINT
LANGUAGE sql STABLE
AS $function$
    SELECT n.incarnation FROM {schema}.nodes AS n WHERE n.node_id = p_owner AND p_incarnation < n.incarnation
$function$
