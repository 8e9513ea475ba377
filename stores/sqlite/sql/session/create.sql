-- Makes a row for a session that something names.
INSERT INTO sessions (instance, session_id) VALUES (?1, ?2)
