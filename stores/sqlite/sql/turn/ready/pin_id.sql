-- Returns the number of an engine version, and numbers a version that has none.
INSERT INTO pins (version) VALUES (?1) ON CONFLICT (version) DO UPDATE
    SET version = excluded.version RETURNING id
