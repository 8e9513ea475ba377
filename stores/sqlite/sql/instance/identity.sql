-- Reads what a lease needs of an instance.
SELECT instance, name, version, current_execution FROM instances WHERE key = ?1
