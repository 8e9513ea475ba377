-- Names an engine version.
SELECT version FROM pins WHERE id = ?1
