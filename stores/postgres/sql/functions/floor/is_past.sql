-- Tells whether every transaction before the given one has ended, so that all that it did is seen or was undone. So is one that
-- this server never gave away: the database was restored.
CREATE OR REPLACE FUNCTION {schema}.is_past(p_transaction XID8) RETURNS BOOLEAN
LANGUAGE sql VOLATILE AS $function$
    SELECT p_transaction <= pg_snapshot_xmin(pg_current_snapshot()) OR p_transaction >= pg_snapshot_xmax(pg_current_snapshot())
$function$
