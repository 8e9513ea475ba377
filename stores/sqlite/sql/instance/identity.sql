-- Reads the id, orchestration, version and current execution of an instance, for a lease.
SELECT instance, name, version, current_execution FROM instances WHERE key = ?1
