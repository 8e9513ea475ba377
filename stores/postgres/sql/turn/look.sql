-- Moves what became runnable by time alone, and tells whether there is an instance to lease, and when there will be.
SELECT * FROM {schema}.look_for_turns($1)
