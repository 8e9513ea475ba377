-- Sets or clears the custom status; its version rises by one for each commit that does.
UPDATE instances
SET custom_status = ?2, custom_status_version = custom_status_version + 1
WHERE key = ?1 AND name IS NOT NULL
