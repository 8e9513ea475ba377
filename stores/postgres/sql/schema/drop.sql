-- Drops one form (list of parameters) of a function, so that calls find the form that was created after it.
-- The function stays locked until the end of the transaction; calls that run meanwhile do not wait.
DO $block$
BEGIN
    EXECUTE format('DROP FUNCTION %s', {oid}::oid::regprocedure);
END
$block$
