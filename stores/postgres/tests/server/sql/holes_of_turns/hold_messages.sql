-- Keeps every deletion where it is when it has begun to look.
BEGIN;
LOCK TABLE {name}.orchestrator_queue
