-- Tells how many messages and activities were ever queued, or a little more: those of transactions that were undone count too.
CREATE OR REPLACE FUNCTION {schema}.ids_drawn() RETURNS BIGINT
LANGUAGE sql VOLATILE AS $function$
    SELECT coalesce(pg_sequence_last_value('{schema}.orchestrator_queue_id_seq'), 0)
        + coalesce(pg_sequence_last_value('{schema}.worker_queue_id_seq'), 0)
$function$
