-- Routes an activity: ?2 and ?3 are its session and tag, ?4 is its route. ?5 is 1 if no live worker has the
-- handler.
UPDATE work SET session = ?2, tag = ?3, route = ?4, refused = ?5 WHERE seq = ?1
