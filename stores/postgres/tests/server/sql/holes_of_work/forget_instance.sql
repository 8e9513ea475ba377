-- Removes what is there of the instance.
DELETE FROM {name}.history;
DELETE FROM {name}.orchestrator_queue;
