-- Reads an activity.
SELECT seq, key, tag, session, attempts, item, traceparent FROM work WHERE seq = ?1
