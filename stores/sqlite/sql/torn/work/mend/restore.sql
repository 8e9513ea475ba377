-- Gives an activity in the place of a torn one all that the torn one has, because that can be read: ?5 to ?7
-- are its tag, session and route.
UPDATE work SET item = ?2, traceparent = ?3, attempts = ?4, tag = ?5, session = ?6, route = ?7 WHERE seq = ?1
