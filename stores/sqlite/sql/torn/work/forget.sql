-- Takes an activity off the list, because it can be read or is gone.
DELETE FROM torn_work WHERE row = ?1
