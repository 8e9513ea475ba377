-- Reads an activity.
SELECT seq, key, tag, session, attempts, item, traceparent, since FROM work WHERE seq = ?1
