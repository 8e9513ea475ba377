-- Keeps every fetch where it is when it has begun to look.
BEGIN;
LOCK TABLE {name}.pins
