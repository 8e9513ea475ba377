-- Lets nobody at the table.
BEGIN;
LOCK TABLE {name}.gate
