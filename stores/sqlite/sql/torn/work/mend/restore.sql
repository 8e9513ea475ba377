-- Gives an activity in the place of a torn one all that the torn one has, because that can be read: ?5 to ?7
-- are its tag, session and route, ?8 are its terms, ?9 to ?12 its deliveries and tries. A try that has ended
-- since counts too, and the deliveries before it do not find poison any more. Returns what it has now.
UPDATE work SET item = ?2, traceparent = ?3, attempts = iif(tries > 0, 0, ?4), tag = ?5, session = ?6,
    route = ?7, call = ?8, deliveries = deliveries + ?9, tries = tries + ?10,
    last_error = coalesce(last_error, ?11), first_fetched = coalesce(?12, first_fetched)
WHERE seq = ?1
RETURNING attempts, call, deliveries, tries, last_error, first_fetched
