-- Rolls back a step.
ROLLBACK TO tree
