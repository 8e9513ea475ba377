-- Forgets the closed claim ?2 that the owner of a session has replaced, because that owner has detached it: a
-- fetch that is dropped later does not give it back (S13, G41).
UPDATE sessions SET replaced_by = NULL
WHERE id = ?1 AND replaced_by = epoch AND replaced_epoch = ?2 AND owner = ?3
  AND (?4 IS NULL OR replaced_incarnation IS ?4)
