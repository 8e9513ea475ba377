-- Removes the handlers of a worker from those that a refusal and a fetch look for.
DELETE FROM worker_handlers WHERE worker = ?1
