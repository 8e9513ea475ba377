-- Moves what became ready by time.
SELECT {name}.sweep_turns({now})
