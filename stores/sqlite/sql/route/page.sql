-- Lists the routes of turns (0) or of work (1).
SELECT id, name, version, pin, tag FROM routes WHERE kind = ?1
