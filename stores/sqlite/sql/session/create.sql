-- Inserts a row for a session, so that work can refer to it by number. The session is neither claimed nor
-- opened yet.
INSERT INTO sessions (instance, session_id) VALUES (?1, ?2)
