-- Reads the mark that a connection to the server itself has: a pooler takes no parameters, or drops them.
SELECT current_setting('steadfast.direct', true)
