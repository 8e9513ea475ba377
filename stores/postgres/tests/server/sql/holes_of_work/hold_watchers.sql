-- Keeps every fetch where it is when it has found work of a session.
BEGIN;
LOCK TABLE {name}.watchers
