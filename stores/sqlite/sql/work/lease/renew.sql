-- Extends the lease of an activity (S4).
UPDATE work SET locked_until = ?2 WHERE seq = (SELECT ?1 WHERE ?1 NOT IN (SELECT row FROM torn_work))
