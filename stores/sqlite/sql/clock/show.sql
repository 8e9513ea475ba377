-- Reads the anchor of the time of the file; there is no row in a file of an older build.
SELECT store_ms, awake_ns, slept_ns, noted_ms, boot FROM clock WHERE id = 1
