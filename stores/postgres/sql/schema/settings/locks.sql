-- How long functions wait for a lock, which stands behind the planner settings of those that do not run
-- inside a transaction of the application. A transaction of the store holds its locks for a moment, one of
-- an application for as long as it stays open: the call fails and is repeated later, so that it blocks
-- neither merged requests nor a connection meanwhile. It stands in the functions because a pooler drops the
-- settings of a session.
SET lock_timeout TO '500ms'
