-- Routes an instance, or pins it to an engine version only: ?2 is its `pin`. ?3 is 1 if no live worker has
-- the handler.
UPDATE instances SET pin = ?2, refused = ?3 WHERE key = ?1
