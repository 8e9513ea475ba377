-- Puts a message in the place of a torn one, with what the indexes know of that.
INSERT INTO messages (seq, key, state, visible_at, attempts, token, starts, item, due, needs_code)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
