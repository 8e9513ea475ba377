-- Returns how long a statement of this connection may take, in milliseconds; 0 for no limit.
-- Locks: none.
SELECT (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::bigint AS limit_ms
