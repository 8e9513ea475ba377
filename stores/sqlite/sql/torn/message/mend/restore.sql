-- Gives a message in the place of a torn one all that the torn one has, because that can be read.
UPDATE messages SET item = ?2, traceparent = ?3, attempts = ?4, starts = ?5, due = ?6, life = ?7,
    dropped = ?8, needs_code = ?9, failure = ?10
WHERE seq = ?1
