-- Finds the oldest ready activities of an owner's sessions, of one tag.
SELECT head, session FROM heads WHERE owner = ?1 AND tag = ?2 ORDER BY head LIMIT ?3
