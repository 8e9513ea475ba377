-- Lists the heads of an owner's sessions of any tag, oldest first, behind one of them.
SELECT head, session FROM heads WHERE owner = ?1 AND head > ?3 ORDER BY head LIMIT ?2
