-- Gives an activity in the place of a torn one all that the torn one has, because that can be read.
UPDATE work SET item = ?2, traceparent = ?3, attempts = ?4, tag = ?5 WHERE seq = ?1
