-- Lists the routes of kinds from ?1 to ?2: 0 of turns, 1 of work, 2 of work with terms.
SELECT id, kind, name, version, pin, tag FROM routes WHERE kind BETWEEN ?1 AND ?2
