-- Says what kind of server this is: whether it only repeats another one, whether it only reads, how texts are encoded, how
-- transactions are isolated, its version, the name of the role and of the database, and whether the role may make schemas.
-- Takes no lock.
SELECT pg_is_in_recovery() AS is_standby,
       current_setting('default_transaction_read_only') = 'on' AS is_read_only,
       current_setting('server_encoding') AS encoding,
       current_setting('default_transaction_isolation') AS isolation,
       current_setting('server_version_num')::int AS version,
       current_setting('server_version') AS version_text,
       current_user::text AS role,
       current_database()::text AS database,
       has_database_privilege(current_database(), 'CREATE') AS may_create
