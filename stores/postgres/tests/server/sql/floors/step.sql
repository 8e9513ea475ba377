-- Does the next step of raising the floors, if one is due, as any fetch would.
SELECT {name}.read_floors({now})
