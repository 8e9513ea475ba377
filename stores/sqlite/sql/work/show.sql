-- Reads the row of an activity, for a lease.
SELECT seq, key, tag, session, attempts, item, traceparent, since, state FROM work WHERE seq = ?1
