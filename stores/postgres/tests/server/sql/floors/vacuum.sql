-- Removes what processed items have left.
VACUUM {name}.orchestrator_queue, {name}.instance_locks, {name}.worker_queue, {name}.floors, {name}.beneath
