-- Returns how many ids the sequences of messages and work have given out. Ids of transactions that were
-- rolled back count too.
-- Locks: none.
CREATE OR REPLACE FUNCTION {schema}.ids_drawn() RETURNS BIGINT
LANGUAGE sql VOLATILE AS $function$
    SELECT coalesce(pg_sequence_last_value('{schema}.orchestrator_queue_id_seq'), 0)
        + coalesce(pg_sequence_last_value('{schema}.worker_queue_id_seq'), 0)
$function$
