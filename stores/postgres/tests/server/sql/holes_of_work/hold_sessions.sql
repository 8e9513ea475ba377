-- Locks the lines of sessions.
SELECT {name}.lock_lines(array_agg(l.instance_id), array_agg(l.session_id)) FROM {name}.lines AS l WHERE l.session_id = ANY ('{sessions}')
