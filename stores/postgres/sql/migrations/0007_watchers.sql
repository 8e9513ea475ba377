-- Watches of sessions whose ids are long: no index has more than the key of the session.

-- A key of all columns can be longer than an entry of an index may be. That an execution watches a session
-- once is kept by `watch_session`, under the lock of the session.
ALTER TABLE {schema}.watchers
    DROP CONSTRAINT watchers_pkey,
    ADD COLUMN id BIGINT PRIMARY KEY DEFAULT nextval('{schema}.numbers');
CREATE INDEX watchers_session ON {schema}.watchers (session_scope, session_id);
