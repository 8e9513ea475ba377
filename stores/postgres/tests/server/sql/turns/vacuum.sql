-- Removes what is in the way of nobody but a count of blocks.
VACUUM {name}.orchestrator_queue, {name}.instance_locks, {name}.instances, {name}.executions, {name}.history
