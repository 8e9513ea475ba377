-- Describes the server: whether it is a standby or read-only, its encoding, isolation level and version, the
-- current role and database, and whether the role may create schemas. Locks: none.
SELECT pg_is_in_recovery() AS is_standby,
       current_setting('default_transaction_read_only') = 'on' AS is_read_only,
       current_setting('server_encoding') AS encoding,
       current_setting('default_transaction_isolation') AS isolation,
       current_setting('server_version_num')::int AS version,
       current_setting('server_version') AS version_text,
       current_user::text AS role,
       current_database()::text AS database,
       has_database_privilege(current_database(), 'CREATE') AS may_create
