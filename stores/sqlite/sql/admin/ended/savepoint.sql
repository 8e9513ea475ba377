-- Begins a step that can be rolled back alone.
SAVEPOINT tree
