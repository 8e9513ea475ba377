-- Tells the planner what is there now.
ANALYZE {name}.worker_queue, {name}.sessions, {name}.lines, {name}.heads
