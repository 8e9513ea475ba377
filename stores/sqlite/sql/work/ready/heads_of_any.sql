-- Finds the oldest ready activities of an owner's sessions, whatever their tag, behind one of them.
SELECT head, session FROM heads WHERE owner = ?1 AND head > ?3 ORDER BY head LIMIT ?2
