-- Tells whether this transaction will wait for the disk.
SELECT current_setting('synchronous_commit')
