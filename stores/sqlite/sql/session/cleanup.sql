-- Removes sessions without a live lease and without work, if they are shared or their instance does not
-- exist: it has no row, no history and no queued start (S13). What was given up where it is, because it
-- cannot be read or removed, does not count. Returns the removed rows.
DELETE FROM sessions
WHERE is_row = 1
  AND NOT (held = 1 AND locked_until > ?1)
  AND (instance = '' OR NOT EXISTS (
      SELECT 1 FROM instances
      WHERE instances.instance = sessions.instance
        AND (instances.name IS NOT NULL
            OR EXISTS (SELECT 1 FROM history WHERE history.key = instances.key)
            OR EXISTS (
                SELECT 1 FROM messages WHERE messages.key = instances.key AND starts = 1
                    AND NOT EXISTS (SELECT 1 FROM torn_messages WHERE row = messages.seq AND until IS NULL)
            ))
  ))
  AND NOT EXISTS (
      SELECT 1 FROM work WHERE work.session = sessions.id
          AND NOT EXISTS (SELECT 1 FROM torn_work WHERE row = work.seq AND until IS NULL)
  )
RETURNING id, instance, session_id, held, owner, incarnation, locked_until, last_activity, epoch,
    idle_timeout, serial, iif(uses = 0, closed_epoch, NULL), released_epoch IS epoch
