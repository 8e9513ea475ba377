-- Tells of an instance that exists how its messages stand: those that a live lease holds, those that are visible, those that
-- are not yet. No row when there is no such instance.
SELECT t.now, t.leased_until,
    count(*) FILTER (WHERE m.held) AS leased,
    count(*) FILTER (WHERE NOT m.held AND m.visible_ms <= t.now) AS waiting,
    min(m.visible_ms) FILTER (WHERE NOT m.held AND m.visible_ms <= t.now) AS oldest,
    count(*) FILTER (WHERE NOT m.held AND m.visible_ms > t.now) AS delayed
FROM (
    SELECT n.now, l.lock_token, l.locked_until AS leased_until
    FROM {schema}.now_ms($2) AS n (now)
    LEFT JOIN {schema}.instance_locks AS l
        ON l.instance_id = $1 AND l.lock_token IS NOT NULL AND l.locked_until > n.now
) AS t
LEFT JOIN LATERAL (
    SELECT q.visible_ms, coalesce(q.lock_token = t.lock_token, false) AS held
    FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = $1 AND q.state = 1
    UNION ALL
    SELECT q.visible_ms, false FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = $1 AND q.state = 0
) AS m ON true
WHERE EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = $1)
   OR EXISTS (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = $1)
   OR EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = $1 AND q.starts)
GROUP BY t.now, t.leased_until
