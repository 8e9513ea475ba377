-- Claims of sessions that were released: their leases did not expire, whatever their trails still tell.

-- The epoch of the last claim that was released before its lease expired. Of a claim that has ended and whose
-- begin the trail has forgotten, it is not known how it ended: it counts as released, so that nothing is told.
ALTER TABLE {schema}.sessions ADD COLUMN released_epoch BIGINT;
UPDATE {schema}.sessions AS s SET released_epoch = s.epoch
WHERE s.epoch > 0 AND NOT s.held AND (
    EXISTS (
        SELECT 1 FROM {schema}.session_trail AS t
        WHERE t.instance_id = s.instance_id AND t.session_id = s.session_id AND t.epoch = s.epoch AND t.is_end
    )
    OR NOT EXISTS (
        SELECT 1 FROM {schema}.session_trail AS t
        WHERE t.instance_id = s.instance_id AND t.session_id = s.session_id AND t.epoch = s.epoch
    )
);
