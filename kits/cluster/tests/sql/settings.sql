-- Shows what decides whether a commit is on the disk.
SELECT concat_ws(' ', current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'))
