-- Extends the lease of an activity by nobody knows how much.
SELECT {name}.renew_work_item_lock('x', NULL, NULL)
