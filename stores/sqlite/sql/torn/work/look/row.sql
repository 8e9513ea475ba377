-- Reads all of an activity, and tells whether the indexes have it as it is.
SELECT key, execution, activity, state, tag, session, visible_at, attempts, token, locked_until, since,
    unreadable, epoch, worker, item, traceparent, route, refused, call, deliveries, tries,
    last_error, first_fetched,
    EXISTS (
        SELECT 1 FROM work AS found INDEXED BY work_identity
        WHERE found.key = work.key AND found.execution = work.execution AND found.activity = work.activity
            AND found.seq = work.seq
    )
    AND CASE state
        WHEN 0 THEN EXISTS (
            SELECT 1 FROM work AS found INDEXED BY work_due
            WHERE found.state = 0 AND found.visible_at = work.visible_at AND found.seq = work.seq
        )
        WHEN 1 THEN session IS NOT NULL OR EXISTS (
            SELECT 1 FROM work AS found INDEXED BY work_free
            WHERE found.state = 1 AND found.session IS NULL AND found.tag = work.tag AND found.seq = work.seq
        )
        WHEN 2 THEN EXISTS (
            SELECT 1 FROM work AS found INDEXED BY work_leased
            WHERE found.state = 2 AND found.locked_until = work.locked_until AND found.seq = work.seq
        )
        ELSE 0
    END
    AND (session IS NULL OR EXISTS (
        SELECT 1 FROM work AS found INDEXED BY work_session
        WHERE found.session = work.session AND found.state = work.state AND found.tag = work.tag
            AND found.seq = work.seq
    ))
    AND (token IS NULL OR EXISTS (
        SELECT 1 FROM work AS found INDEXED BY work_token
        WHERE found.token = work.token AND found.seq = work.seq
    ))
    AND (route IS NULL OR EXISTS (
        SELECT 1 FROM work AS found INDEXED BY work_routed
        WHERE found.route = work.route AND found.seq = work.seq
    ))
FROM work WHERE seq = ?1
