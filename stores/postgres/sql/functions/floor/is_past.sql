-- Tells whether every transaction before the given one has ended, so that all that it did is seen or was undone. So is one that
-- this server never gave away: the database was restored. The number of the transaction that asks is none of those, although its
-- snapshot does not tell it from them: others before it may be under way.
CREATE OR REPLACE FUNCTION {schema}.is_past(p_transaction XID8) RETURNS BOOLEAN
LANGUAGE sql VOLATILE AS $function$
    SELECT p_transaction <= pg_snapshot_xmin(pg_current_snapshot())
        OR (p_transaction >= pg_snapshot_xmax(pg_current_snapshot())
            AND p_transaction IS DISTINCT FROM pg_current_xact_id_if_assigned())
$function$
