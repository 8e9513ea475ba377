-- Tells the planner what is there now.
ANALYZE {name}.orchestrator_queue, {name}.instance_locks, {name}.instances, {name}.executions, {name}.history, {name}.pins
