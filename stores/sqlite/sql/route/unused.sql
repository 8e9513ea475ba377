-- Removes routes that no instance and no activity has, in a bounded batch.
DELETE FROM routes WHERE id IN (
    SELECT id FROM routes
    WHERE kind IN (0, 1, 2) AND iif(
        kind = 0,
        NOT EXISTS (SELECT 1 FROM instances WHERE instances.pin < 0 AND instances.pin = -routes.id),
        NOT EXISTS (SELECT 1 FROM work WHERE work.route IS NOT NULL AND work.route = routes.id)
    )
    LIMIT ?1
)
