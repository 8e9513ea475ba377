-- Takes the delivery of a fetch that was dropped off an activity (S22). ?2 is 1 if it was the first one.
UPDATE work SET deliveries = max(deliveries - 1, 0), first_fetched = iif(?2, NULL, first_fetched)
WHERE seq = (SELECT ?1 WHERE ?1 NOT IN (SELECT row FROM torn_work))
