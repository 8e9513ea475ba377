-- Extends the lease of an instance by nobody knows how much.
SELECT {name}.renew_orchestration_item_lock('x', NULL, NULL)
