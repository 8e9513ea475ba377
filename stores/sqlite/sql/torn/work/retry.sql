-- Lets an activity that was given up be looked at again at once; ?2 is now.
UPDATE torn_work SET attempts = 0, until = ?2 WHERE row = ?1
