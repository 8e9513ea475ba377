-- Removes what is in the way of nobody but a count of blocks.
VACUUM {name}.worker_queue, {name}.heads, {name}.sessions
