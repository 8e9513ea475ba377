-- Numbers an engine version, giving it a number if it has none.
INSERT INTO pins (version) VALUES (?1) ON CONFLICT (version) DO UPDATE SET version = excluded.version RETURNING id
