-- Holds the line of a session, as a commit does that queues work for it.
BEGIN;
SELECT {name}.lock_lines('{""}', '{S}');
