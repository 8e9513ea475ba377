-- Puts off the look below the floors.
UPDATE {name}.floors SET healed_ms = {now}
