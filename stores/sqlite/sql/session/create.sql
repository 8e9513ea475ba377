-- Inserts a row for a session that work is about to refer to; it was never claimed or opened.
INSERT INTO sessions (instance, session_id) VALUES (?1, ?2)
