-- Looks for turns, which reads the floors twice.
SELECT * FROM {name}.look_for_turns(1000002)
