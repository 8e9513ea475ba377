-- Tells whether the lease ?2 of an instance holds a message that stands behind the one at ?4, due at ?3.
SELECT EXISTS (
    SELECT 1 FROM messages WHERE key = ?1 AND state = 1 AND token = ?2
        AND (coalesce(due, visible_at), seq) > (?3, ?4)
)
