-- Writes the anchor of the time of the file.
INSERT INTO clock (id, store_ms, awake_ns, slept_ns, noted_ms, boot) VALUES (1, ?1, ?2, ?3, ?4, ?5)
ON CONFLICT (id) DO UPDATE SET store_ms = excluded.store_ms, awake_ns = excluded.awake_ns,
    slept_ns = excluded.slept_ns, noted_ms = excluded.noted_ms, boot = excluded.boot
