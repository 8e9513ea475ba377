-- Moves what became due by time, then tells whether an instance is ready and when the next one will be.
SELECT * FROM {schema}.look_for_turns($1)
