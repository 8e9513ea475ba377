-- Lists the heads of an owner's sessions for one tag, oldest first.
SELECT head, session FROM heads WHERE owner = ?1 AND tag = ?2 ORDER BY head LIMIT ?3
