-- Lists instances of a route that were refused, in a bounded batch; ?1 is their `pin`.
SELECT key FROM instances WHERE refused = 1 AND pin = ?1 LIMIT ?2
