-- Tells whether an owner holds the session, and since that start.
SELECT count(*) FROM {name}.sessions AS s
WHERE s.session_id = 'S' AND s.held AND s.worker_id = '{owner}' AND s.incarnation IS NOT DISTINCT FROM {start}
