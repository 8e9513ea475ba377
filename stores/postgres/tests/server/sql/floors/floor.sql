-- Tells how high a floor is.
SELECT {kind} FROM {name}.floors
