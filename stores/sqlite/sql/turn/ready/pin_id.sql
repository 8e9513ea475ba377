-- Returns the number of an engine version; a new version gets the next number.
INSERT INTO pins (version) VALUES (?1) ON CONFLICT (version) DO UPDATE
    SET version = excluded.version RETURNING id
