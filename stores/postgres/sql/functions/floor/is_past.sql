-- Tells whether every transaction with a lower id than the given one has ended, so that the caller sees all
-- their writes. This also holds for an id that this server has not given out yet: the database was restored
-- from another server. The caller's own id is not taken for such an id, because transactions before it may
-- still be running.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.is_past(p_transaction XID8) RETURNS BOOLEAN
LANGUAGE sql VOLATILE AS $function$
    SELECT p_transaction <= pg_snapshot_xmin(pg_current_snapshot())
        OR (p_transaction >= pg_snapshot_xmax(pg_current_snapshot())
            AND p_transaction IS DISTINCT FROM pg_current_xact_id_if_assigned())
$function$
