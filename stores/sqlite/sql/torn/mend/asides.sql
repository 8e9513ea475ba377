-- Lists what was set aside of a queue where it is, torn.
SELECT id, torn FROM set_aside WHERE queue = ?1 AND torn IS NOT NULL
