-- Reads the row of an activity, for a lease.
SELECT seq, key, tag, session, attempts, item, traceparent, since, state, call, deliveries, tries, last_error,
    first_fetched
FROM work WHERE seq = ?1
