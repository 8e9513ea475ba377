-- Drops one form of a function, so that calls find the form that was made after it. Its place is locked until the end of the
-- transaction; who calls it meanwhile is not kept waiting.
DO $block$
BEGIN
    EXECUTE format('DROP FUNCTION %s', {oid}::oid::regprocedure);
END
$block$
