-- Reads where an activity stands in line.
SELECT session, tag FROM work WHERE seq = ?1
